"""Kinds of workload x gang scheduling x storage x placement: the specs whose manifests are golden files, and go to a real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from metaflow_extensions.kubernetes_ext.backends.appwrapper import AppWrapperBackend
from metaflow_extensions.kubernetes_ext.backends.base import Backend, Manifest
from metaflow_extensions.kubernetes_ext.backends.job import JobBackend
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.manifests.pod_group import pod_group
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.claims import ResourceClaim
from metaflow_extensions.kubernetes_ext.spec.fault_tolerance import FaultTolerance
from metaflow_extensions.kubernetes_ext.spec.launch import LaunchSpec
from metaflow_extensions.kubernetes_ext.spec.placement import Placement, Topology
from metaflow_extensions.kubernetes_ext.spec.storage import Storage
from metaflow_extensions.kubernetes_ext.spec.volumes import (
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyVolume,
    HostVolume,
    RankVolume,
    SecretVolume,
)
from tests.builders import make_container, make_gang, make_group, make_spec

BACKENDS: dict[str, Backend] = {
    "job": JobBackend(),
    "jobset": JobSetBackend(),
    "appwrapper-job": AppWrapperBackend(wrapped=JobBackend()),
    "appwrapper-jobset": AppWrapperBackend(wrapped=JobSetBackend()),
}
GANGS = ("none", "kueue", "coscheduling", "native")
STORAGE = {
    "no-storage": Storage(),
    "all-storage": Storage(
        shared_memory="1Gi",
        tmpfs_path="/tmpfs",
        tmpfs_size="1Gi",
        claims={"data.v2": "/data"},
        volumes=(
            ClaimVolume(path="/mine", claim="ranks", sub_path="$(JOB_COMPLETION_INDEX)"),
            RankVolume(path="/scratch", size="100Gi", storage_class="fast"),
            EmptyVolume(path="/cache", size="10Gi"),
            HostVolume(path="/host", host_path="/opt/data", type="Directory", read_only=True),
            DeviceVolume(path="/dev/infiniband", host_path="/dev/infiniband"),
            ConfigVolume(path="/etc/config", config_map="settings", read_only=True),
            SecretVolume(path="/etc/secret", secret="keys", read_only=True),
        ),
    ),
}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]}
                    ]
                }
            ]
        }
    }
}
PLACEMENT: dict[str, dict[str, Any]] = {
    "anywhere": {},
    "placed": {
        "placement": Placement(
            node_selector={"pool": "gpu"},
            tolerations=({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},),
            priority_class="high",
            scheduler="gang-scheduler",
            affinity=AFFINITY,
            runtime_class="nvidia",
            topology=Topology(level="cloud.provider.com/topology-rack", is_required=True),
        ),
        "claims": (ResourceClaim(name="gpu", template="one-gpu"), ResourceClaim(name="shared", claim="nvlink", request="part")),
        "networks": ("rdma",),
        "has_sidecars": False,
        "overlays": (
            {"spec": {"topologySpreadConstraints": None, "dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}}},
        ),
    },
}


@dataclass(frozen=True)
class Cell:
    backend: str
    gang: str
    storage: str
    placement: str

    def __str__(self) -> str:
        return ".".join((self.backend, self.gang, self.storage, self.placement))

    def spec(self) -> LaunchSpec:
        fields = {"storage": STORAGE[self.storage], **PLACEMENT[self.placement]}
        is_gang = self.backend.endswith("jobset")
        return make_spec(
            groups=make_gang(3, make_container(), **fields) if is_gang else (make_group("task", **fields),),
            labels={labels.KUEUE_QUEUE: "team"} if self.gang == "kueue" else {},
            gang=self.gang,
            ttl_seconds=604800,
            fault_tolerance=FaultTolerance(retry_limit=2, terminal_exit_codes=(3,)) if "appwrapper" in self.backend else None,
        )

    def objects(self) -> list[Manifest]:
        """What is posted, in its order."""
        spec = self.spec()
        group = pod_group(spec)
        return [*([group] if group else []), BACKENDS[self.backend].build(spec)]

    @property
    def is_golden(self) -> bool:
        """The plain ones, those that differ from them in one thing, and those with everything."""
        is_special = (self.gang != "none", self.storage != "no-storage", self.placement != "anywhere")
        return sum(is_special) <= 1 or (all(is_special) and self.gang == "coscheduling")


def cells() -> Iterator[Cell]:
    for backend, gang, storage, placement in product(BACKENDS, GANGS, STORAGE, PLACEMENT):
        yield Cell(backend, gang, storage, placement)
