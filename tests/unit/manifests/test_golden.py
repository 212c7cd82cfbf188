"""Whole manifests, as `kubernetes manifest` prints them. After a wanted change: pytest --update-golden, and read the difference."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from metaflow_extensions.kubernetes_ext.manifests.job import job
from metaflow_extensions.kubernetes_ext.manifests.jobset import jobset
from metaflow_extensions.kubernetes_ext.manifests.render import as_yaml
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.environment import fields, literals
from metaflow_extensions.kubernetes_ext.spec.launch import LaunchSpec
from metaflow_extensions.kubernetes_ext.spec.placement import Placement
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
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
from tests.manifest_matrix import Cell, cells


def with_resources(size: int = 1, **resources: object) -> LaunchSpec:
    return make_spec(size, container=make_container(resources=Resources(**resources)))  # type: ignore[arg-type]


SIZES = {"cpu": "1", "memory": "4096M", "disk": "10240M"}
JOBS = {
    "job_plain": make_spec(groups=(make_group("task"),), ttl_seconds=604800, deadline_seconds=432000),
    "job_indexed": make_spec(groups=(make_group("task", 3),)),
    "job_burstable": with_resources(**SIZES),
    "job_guaranteed": with_resources(**SIZES, limits_equal_requests=True),
    "job_gpu": with_resources(**SIZES, gpu=2, gpu_vendor="AMD"),
    "job_extended": with_resources(**SIZES, gpu=1, extended={"vpc.amazonaws.com/efa": 4, "hugepages-2Mi": "64Mi"}),
    "job_storage": make_spec(
        groups=(
            make_group(
                storage=Storage(
                    shared_memory="256Mi",
                    tmpfs_path="/metaflow_temp",
                    tmpfs_size="2048Mi",
                    claims={"data": "/data", "models.v2": "/models", "dhsm": "/mine"},
                )
            ),
        )
    ),
    "job_volumes": make_spec(
        groups=(
            make_group(
                storage=Storage(
                    shared_memory="1Gi",
                    claims={"volume-0": "/named-like-ours"},
                    volumes=(
                        ClaimVolume(path="/data", claim="data", read_only=True, sub_path="$(JOB_COMPLETION_INDEX)"),
                        RankVolume(path="/scratch", size="100Gi", storage_class="fast"),
                        EmptyVolume(path="/cache", size="10Gi"),
                        EmptyVolume(path="/tmp", in_memory=True, size="1Gi"),
                        HostVolume(path="/host", host_path="/opt/data", type="Directory", read_only=True),
                        ConfigVolume(path="/etc/config", config_map="settings", read_only=True),
                        SecretVolume(path="/etc/secret", secret="keys", read_only=True),
                    ),
                )
            ),
        )
    ),
    "job_devices": make_spec(
        groups=(make_group(storage=Storage(volumes=(DeviceVolume(path="/dev/infiniband", host_path="/dev/infiniband"),))),),
    ),
    "job_networks": make_spec(groups=(make_group(networks=("rdma", "team/fast@net1"), has_sidecars=False),)),
    "job_whole_node": with_resources(cpu="96", memory="1152Gi", reserved_cpu="100m", reserved_memory="1Gi"),
    "job_tmpfs_without_size": make_spec(groups=(make_group(storage=Storage(tmpfs_path="/metaflow_temp")),)),
    "job_secrets": make_spec(
        container=make_container(env_from_secrets=("aws", "wandb.v2"), image_pull_policy="Always"),
        image_pull_secrets=("registry",),
        service_account="trainer",
        automount_service_account_token=False,
    ),
    "job_environment": make_spec(
        container=make_container(
            command=("bash", "-c", "echo $HOME $$ $(date)"),
            env=literals(
                {"EMPTY": "", "LINES": "a\nb\n", "MONEY": "$(HOME) $$ $é 5$", "NUMBER": "1e3", "YES": "y", "ÜNI": None}
            )
            + fields({"POD": "metadata.name"}),
            ports=(8080, 9090),
            security_context={"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}},
        )
    ),
    "job_placement": make_spec(
        groups=(
            make_group(
                placement=Placement(
                    node_selector={"node.kubernetes.io/instance-type": "g5.xlarge"},
                    tolerations=({"key": "gpu", "operator": "Exists", "effect": "NoSchedule"},),
                )
            ),
        )
    ),
    "job_labels": make_spec(
        groups=(make_group(labels={"team": "own"}, annotations={"note": "of the pods"}),),
        labels={labels.FLOW: "DigitsFlow", "team": "vision", labels.KUEUE_QUEUE: "research"},
        annotations={labels.FLOW: "DigitsFlow", "note": "ä\u2028b"},
    ),
}
JOBSETS = {
    **{f"jobset_{size}": make_spec(size, ttl_seconds=3600) for size in (1, 2, 4, 16)},
    "jobset_labels": make_spec(2, labels={labels.STEP: "train", labels.KUEUE_QUEUE: "research"}, annotations={"note": "all"}),
    "jobset_all": make_spec(
        groups=make_gang(
            3,
            make_container(resources=Resources(**SIZES, gpu=1), env_from_secrets=("aws",), ports=(29500,)),
            placement=Placement(node_selector={"pool": "gpu"}),
            storage=Storage(shared_memory="1024Mi"),
        ),
        service_account="trainer",
        deadline_seconds=3600,
        ttl_seconds=0,
        grace_seconds=120,
    ),
}
MANIFESTS = {**{name: job(spec) for name, spec in JOBS.items()}, **{name: jobset(spec) for name, spec in JOBSETS.items()}}


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_manifest(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"{name}.yaml", as_yaml(MANIFESTS[name]))


@pytest.mark.parametrize("name", sorted(MANIFESTS))
def test_what_is_printed_is_what_is_posted(name: str) -> None:
    assert yaml.safe_load(as_yaml(MANIFESTS[name])) == MANIFESTS[name]


@pytest.mark.parametrize("cell", [cell for cell in cells() if cell.is_golden], ids=str)
def test_cell_of_the_matrix(cell: Cell, golden: Callable[[str, str], None]) -> None:
    golden(f"matrix/{cell}.yaml", "---\n".join(as_yaml(manifest) for manifest in cell.objects()))
