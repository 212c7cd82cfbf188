"""What a cluster has from its first moment: the namespaces, the system priorities and the kubernetes Service."""

from __future__ import annotations

from typing import Any

from ..cluster import Cluster

Object = dict[str, Any]
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))


def bootstrap(cluster: Cluster, *, port: int) -> None:
    """Create the initial objects; service accounts come here too, so that a pod may be created at once."""
    for name in NAMESPACES:
        cluster.create("namespaces", {"metadata": {"name": name}})
        cluster.create("serviceaccounts", {"metadata": {"name": "default", "namespace": name}})
    for name, value in _PRIORITIES:
        cluster.create("priorityclasses.scheduling.k8s.io", {"metadata": {"name": name}, "value": value})
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}]
    labels = {"component": "apiserver", "provider": "kubernetes"}
    meta = {"name": "kubernetes", "namespace": "default", "labels": labels}
    cluster.create("services", {"metadata": meta, "spec": {"clusterIP": "10.96.0.1", "ports": ports}})
    for resource in cluster.store.resources:
        if resource.custom:  # installed later than Kubernetes: its watch cache reaches back to that moment only
            cluster.store.begin(resource.name)
