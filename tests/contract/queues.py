"""Queues of a real Kueue, each with a quota of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from typing import Any

from metaflow_extensions.kubernetes_ext.cluster.protocol import ClusterClient, Resource
from metaflow_extensions.kubernetes_ext.errors import ClusterError
from tests.contract.waiting import until

QUEUE = "team"


def _kind(plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return Resource("kueue.x-k8s.io", "v1beta2", plural, kind, namespaced=namespaced)


FLAVORS = _kind("resourceflavors", "ResourceFlavor")
CLUSTER_QUEUES = _kind("clusterqueues", "ClusterQueue")
PRIORITIES = _kind("workloadpriorityclasses", "WorkloadPriorityClass")
CHECKS = _kind("admissionchecks", "AdmissionCheck")
TOPOLOGIES = _kind("topologies", "Topology")
LOCAL_QUEUES = _kind("localqueues", "LocalQueue", namespaced=True)
WORKLOADS = _kind("workloads", "Workload", namespaced=True)


@contextmanager
def queue(admin: ClusterClient, namespace: str, cpu: str, *, is_checked: bool = False, topology: str = "") -> Iterator[None]:
    """LocalQueue QUEUE of the namespace. A higher priority (`high`) preempts. `is_checked`: with an admission check, whose controller
    is the test; `topology`: nodes are told apart by this label. What is of the whole cluster has the namespace's name."""
    quota = [{"name": "cpu", "nominalQuota": cpu}, {"name": "memory", "nominalQuota": "100Gi"}]
    quota.append({"name": "ephemeral-storage", "nominalQuota": "100Gi"})
    flavors = [{"name": namespace, "resources": quota}]
    spec: dict[str, Any] = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": [one["name"] for one in quota], "flavors": flavors}],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    made: list[tuple[Resource, str]] = []

    def create(resource: Resource, name: str, of: str = "", **fields: Any) -> None:
        kind = {"apiVersion": resource.api_version, "kind": resource.kind}
        admin.create(resource, of, {**kind, "metadata": {"name": name}, **fields})
        if not of:
            made.append((resource, name))

    try:
        if topology:
            create(TOPOLOGIES, namespace, spec={"levels": [{"nodeLabel": topology}]})
        placed = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": namespace} if topology else {}
        create(FLAVORS, namespace, spec=placed)
        create(PRIORITIES, high(namespace), value=100)
        if is_checked:
            create(CHECKS, namespace, spec={"controllerName": "tests.example.com/nobody"})
            _set_active(admin, namespace)
            spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": namespace}]}
        create(CLUSTER_QUEUES, namespace, spec=spec)
        create(LOCAL_QUEUES, QUEUE, of=namespace, spec={"clusterQueue": namespace})
        yield
    finally:
        for resource, name in reversed(made):
            with suppress(ClusterError):
                admin.delete(resource, "", name)


def high(namespace: str) -> str:
    """The WorkloadPriorityClass that comes before all without one."""
    return f"{namespace}-high"


def reject(admin: ClusterClient, namespace: str, message: str) -> None:
    """As the admission check's controller does."""
    (workload,) = until(lambda: admin.list(WORKLOADS, namespace)["items"], "Kueue has its Workload")
    state = {"name": namespace, "state": "Rejected", "message": message, "lastTransitionTime": _now()}
    _patch_status(admin, WORKLOADS, namespace, workload["metadata"]["name"], {"admissionChecks": [state]})


def _set_active(admin: ClusterClient, check: str) -> None:
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _now()}
    _patch_status(admin, CHECKS, "", check, {"conditions": [active]})


def _patch_status(admin: ClusterClient, resource: Resource, namespace: str, name: str, status: dict[str, Any]) -> None:
    of_one = Resource(
        resource.group, resource.version, f"{resource.plural}/{name}", resource.kind, namespaced=resource.namespaced
    )
    admin.patch(of_one, namespace, "status", {"status": status})


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
