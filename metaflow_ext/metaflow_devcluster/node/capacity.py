"""The size of the nodes.

By default a node offers more than the machine has: 32 CPUs, 128 Gi of memory and 1 Ti of disk at least. Requests are
promises for a shared cluster, and Metaflow's default (1 CPU, 4096 MB and 10 GB of disk a task) would otherwise let a
laptop with two cores run two of the sixteen ranks that it can very well run for a try. Limits are enforced anyway.
"""

from __future__ import annotations

import datetime
import os
import platform
import sys
import uuid
from dataclasses import dataclass
from typing import Any

from ..controllers.objects import format_time

Object = dict[str, Any]
LEAST_CPUS, LEAST_MEMORY, LEAST_DISK = 32, 128 * 2**30, 2**40


@dataclass(frozen=True, kw_only=True)
class NodeSize:
    """Quantities as Kubernetes writes them."""

    cpu: str
    memory: str
    disk: str
    pods: str = "250"


def default_size() -> NodeSize:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return NodeSize(
        cpu=str(max(os.cpu_count() or 1, LEAST_CPUS)),
        memory=f"{max(memory, LEAST_MEMORY) // 1024}Ki",
        disk=f"{LEAST_DISK // 1024}Ki",
    )


def node_object(name: str, size: NodeSize, now: datetime.datetime) -> Object:
    """A Ready node; nodeInfo is whole, because clients validate it."""
    stamp = format_time(now)
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    room = {"cpu": size.cpu, "memory": size.memory, "ephemeral-storage": size.disk, "pods": size.pods}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": architecture,
        "beta.kubernetes.io/os": system,
        "beta.kubernetes.io/arch": architecture,
    }
    healthy = {
        "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
    }
    conditions = [
        {
            "type": kind,
            "status": status,
            "lastHeartbeatTime": stamp,
            "lastTransitionTime": stamp,
            "reason": reason,
            "message": message,
        }
        for kind, (status, reason, message) in healthy.items()
    ]
    identity = str(uuid.uuid4())
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": dict(room),
            "allocatable": dict(room),
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": identity.replace("-", ""),
                "systemUUID": identity,
                "bootID": identity,
                "kernelVersion": platform.release(),
                "osImage": platform.platform(),
                "containerRuntimeVersion": "devcluster://1.0.0",
                "kubeletVersion": "v1.34.0",
                "kubeProxyVersion": "",
                "operatingSystem": system,
                "architecture": architecture,
            },
            "images": [],
        },
    }
