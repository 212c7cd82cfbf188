"""A gang as its controllers would write it, step by step, into a FakeCluster."""

from __future__ import annotations

import copy
from typing import Any

from metaflow_extensions.kubernetes_ext.backends.base import Manifest
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.spec import labels
from tests.builders import make_spec
from tests.fakes import FakeCluster

BACKEND = JobSetBackend()
JOBSETS = resource_of(BACKEND)
NAME = "digits-train-0123456789"


def manifest(size: int = 2) -> Manifest:
    built = BACKEND.build(make_spec(size))
    built["metadata"].setdefault("annotations", {})[labels.SUBMISSION] = "ours"
    return built


class Gang:
    """A JobSet of `size` in a cluster, and what happens to it."""

    def __init__(self, cluster: FakeCluster, size: int = 2) -> None:
        self.cluster = cluster
        self.size = size
        self.object = cluster.create(JOBSETS, "default", manifest(size))

    def pod_name(self, rank: int) -> str:
        return f"{NAME}-control-0-0-aaaaa" if rank == 0 else f"{NAME}-worker-0-{rank - 1}-bbbbb"

    def start(self, *ranks: int) -> None:
        """Jobs and running pods; of all ranks if none is named."""
        for group in ("control", "worker")[: min(self.size, 2)]:
            self.cluster.update(JOBS, self._job(group))
        for rank in ranks or range(self.size):
            self.set_pod(rank, "Running")

    def set_pod(self, rank: int, phase: str, exit_code: int | None = None, reason: str = "", **metadata: Any) -> None:
        container: dict[str, Any] = {"name": "train", "ready": phase == "Running", "restartCount": 0}
        if phase == "Pending" and reason:
            container["state"] = {"waiting": {"reason": reason, "message": f"about {reason}"}}
        elif phase == "Running":
            container["state"] = {"running": {"startedAt": "2026-01-01T12:00:01Z"}}
        elif exit_code is not None:
            end = {"exitCode": exit_code, "reason": reason or ("Completed" if exit_code == 0 else "Error")}
            times = {"startedAt": "2026-01-01T12:00:01Z", "finishedAt": "2026-01-01T12:01:00Z"}
            container["state"] = {"terminated": {**end, **times}}
        group, index = ("control", 0) if rank == 0 else ("worker", rank - 1)
        self.cluster.update(
            PODS,
            {
                "metadata": {
                    "name": self.pod_name(rank),
                    "labels": {
                        labels.JOBSET_NAME: NAME,
                        labels.JOBSET_GROUP: group,
                        labels.JOBSET_GROUP_REPLICAS: "1",
                        labels.JOBSET_JOB_INDEX: "0",
                        labels.COMPLETION_INDEX: str(index),
                        labels.JOBSET_RESTART_ATTEMPT: "0",
                        labels.JOB_NAME: f"{NAME}-{group}-0",
                    },
                    **metadata,
                },
                "spec": {"nodeName": "node-1", "containers": [{"name": "train"}]},
                "status": {"phase": phase, "containerStatuses": [container]},
            },
        )

    def succeed(self) -> None:
        for rank in range(self.size):
            self.set_pod(rank, "Succeeded", exit_code=0)
        self.finish("Completed")

    def finish(self, condition: str) -> None:
        done = copy.deepcopy(self.object)
        done["status"] = {"conditions": [{"type": condition, "status": "True", "reason": "X", "message": "m"}]}
        self.cluster.update(JOBSETS, done)

    def _job(self, group: str) -> dict[str, Any]:
        marks = {labels.JOBSET_NAME: NAME, labels.JOBSET_GROUP: group, labels.JOBSET_RESTART_ATTEMPT: "0"}
        size = 1 if group == "control" else self.size - 1
        return {
            "metadata": {"name": f"{NAME}-{group}-0", "labels": marks},
            "spec": {"completions": size, "parallelism": size},
            "status": {"active": size},
        }
