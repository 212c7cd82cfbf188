"""A cluster without processes: store, admission and controllers on a clock that the test moves; pods are scripted."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metaflow_devcluster.api.admission import Admission
from metaflow_devcluster.cluster import Cluster
from metaflow_devcluster.controllers import delays
from metaflow_devcluster.controllers.control_plane import control_plane
from metaflow_devcluster.controllers.objects import format_time, spec_of
from metaflow_devcluster.node.capacity import NodeSize, node_object
from metaflow_devcluster.resources import jobset_resource, served_resources
from metaflow_devcluster.store import Store

Object = dict[str, Any]
JOBS, JOBSETS = "jobs.batch", "jobsets.jobset.x-k8s.io"
START = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
FAIL_JOB_RULES = [
    {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}},
]


def replicated_job(name: str, pods: int = 1, **spec: Any) -> Object:
    container = {"name": "main", "image": "app", "command": ["work"]}
    template = {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]}}
    job = {"backoffLimit": 0, "parallelism": pods, "completions": pods, "template": template, **spec}
    return {"name": name, "replicas": 1, "template": {"spec": job}}


def gang(name: str = "g", *, job: Object | None = None, **spec: Any) -> Object:
    """A JobSet of one control and three workers in one Indexed Job; `job` goes into both Jobs' specs."""
    rjobs = [replicated_job("control", **(job or {})), replicated_job("worker", 3, **(job or {}))]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": rjobs, **spec},
    }


class World:
    def __init__(self, nodes: int = 2, size: NodeSize | None = None, **delay: float) -> None:
        self.seconds = 0.0
        self.store = Store(served_resources(jobset=jobset_resource()), now=self.now)
        self.cluster = Cluster(self.store, Admission(self.store))
        chosen = replace(delays.NONE, pod_backoff=10.0, **delay)
        self.manager = control_plane(self.cluster, chosen, self.now)
        self.manager._clock = lambda: self.seconds
        self.store.create("namespaces", {"metadata": {"name": "default"}, "spec": {"finalizers": ["kubernetes"]}})
        for number in range(nodes):
            room = size or NodeSize(cpu="4", memory="8Gi", disk="100Gi")
            self.store.create("nodes", node_object(f"node-{number}", room, self.now()))
        self.manager.watch()
        self.settle()
        self.history = self.store.subscribe()

    def now(self) -> datetime.datetime:
        return START + datetime.timedelta(seconds=self.seconds)

    def settle(self) -> None:
        self.manager.settle()

    def advance(self, seconds: float, step: float = 0.5) -> None:
        end = self.seconds + seconds
        while self.seconds < end:
            self.seconds = min(self.seconds + step, end)
            self.settle()

    def create(self, resource: str, obj: Object) -> Object:
        created = self.cluster.create(resource, obj)
        self.settle()
        return created

    def start(self, jobset: Object, *, running: bool = True) -> str:
        """Create a JobSet and let its pods run; its name."""
        name = self.create(JOBSETS, jobset)["metadata"]["name"]
        if running:
            for pod in self.pods():
                self.run(pod)
        return str(name)

    # -- reading

    def pods(self) -> list[Object]:
        return self.store.list("pods", "default")

    def pod(self, host: str) -> Object:
        """The newest pod of this host name."""
        found = [pod for pod in self.pods() if spec_of(pod).get("hostname") == host]
        return max(found, key=lambda pod: int(pod["metadata"]["resourceVersion"]))

    def jobs(self) -> list[str]:
        return sorted(job["metadata"]["name"] for job in self.store.list(JOBS, "default"))

    def job(self, name: str) -> Object:
        return self.store.get(JOBS, "default", name)

    def jobset(self, name: str = "g") -> Object:
        return self.store.get(JOBSETS, "default", name)

    def conditions(self, obj: Object) -> list[tuple[str, str, str]]:
        return [(c["type"], c["status"], c["reason"]) for c in obj.get("status", {}).get("conditions", [])]

    def message(self, obj: Object, kind: str) -> str:
        return next(str(c["message"]) for c in obj["status"]["conditions"] if c["type"] == kind)

    def counts(self, name: str, rjob: str) -> str:
        """The counters of a replicated job: a(ctive) r(eady) s(ucceeded) f(ailed)."""
        entries = self.jobset(name)["status"]["replicatedJobsStatus"]
        found = next(entry for entry in entries if entry["name"] == rjob)
        return " ".join(f"{key[0]}{found[key]}" for key in ("active", "ready", "succeeded", "failed"))

    def events(self, name: str, reason: str = "") -> list[tuple[str, str]]:
        found = [e for e in self.store.list("events", "default") if e["involvedObject"]["name"] == name]
        return [(e["reason"], e["message"]) for e in found if not reason or e["reason"] == reason]

    def written(self, resource: str) -> list[Object]:
        """Every version of a resource's objects since the start or the last call."""
        return [change.object for change in self.history.pending() if change.resource == resource]

    # -- playing the kubelet

    def run(self, pod: Object) -> None:
        self._write(pod, "Running", {"running": {"startedAt": format_time(self.now())}}, "True")

    def end(self, pod: Object, code: int = 0, reason: str = "") -> None:
        stamp = format_time(self.now())
        state = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "finishedAt": stamp}
        self._write(pod, "Failed" if code else "Succeeded", {"terminated": state}, "False")

    def finish_deletion(self, pod: Object, code: int = 143) -> None:
        """What a kubelet does at the end of a pod that is being deleted: first the status, then the removal."""
        meta = pod["metadata"]
        self.end(pod, code)
        self.store.delete("pods", meta["namespace"], meta["name"], grace_seconds=0)
        self.settle()

    def finish_deletions(self) -> None:
        for pod in self.pods():
            if pod["metadata"].get("deletionTimestamp"):
                self.finish_deletion(pod)

    def disrupt(self, pod: Object) -> None:
        """A kubelet evicts a pod."""

        def change(found: Object) -> None:
            new = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
            found["status"].setdefault("conditions", []).append(new)
            found["status"].update(phase="Failed", reason="Evicted")

        self._modify(pod, change)

    def _write(self, pod: Object, phase: str, state: Object, ready: str) -> None:
        def change(found: Object) -> None:
            status = found.setdefault("status", {})
            kept = [c for c in status.get("conditions", []) if c["type"] != "Ready"]
            status["conditions"] = [*kept, {"type": "Ready", "status": ready}]
            status["phase"] = phase
            status["containerStatuses"] = [{"name": "main", "state": state, "restartCount": 0}]

        self._modify(pod, change)

    def _modify(self, pod: Object, change: Any) -> None:
        meta = pod["metadata"]
        self.store.modify("pods", meta["namespace"], meta["name"], change, status_only=True)
        self.settle()


def names(objects: Sequence[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)
