"""Kubernetes objects for tests, as the API server would answer them: every field has a default, a test names only what it is about.

Times are seconds after T0. A gang is 1 control + 3 workers, named js-1, in the shape "s2" (one Indexed Job of workers) or "s1" (a Job
per worker).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from metaflow_extensions.kubernetes_ext.status.model import Observation, PodRecord
from metaflow_extensions.kubernetes_ext.status.pods import remember

Object = dict[str, Any]
T0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
NAME = "js-1"
GANG = {"control": 1, "worker": 3}


def moment(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    """As in objects: whole seconds."""
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", at: float = 10) -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp(at)}


def make_jobset(
    *conditions: Object,
    groups: Mapping[str, int] | None = None,
    shape: str = "s2",
    status: Any = None,
    suspend: bool | None = None,
    restarts: int = 0,
    counters: Mapping[str, Mapping[str, int]] | None = None,
    counters_key: str = "replicatedJobsStatus",
    failure_policy: Object | None = None,
    job_spec: Object | None = None,
    labels: Mapping[str, str] | None = None,
    deleting_at: float | None = None,
    name: str = NAME,
) -> Object:
    """`status` replaces all that the other arguments put into it; `job_spec` is added to the spec of every Job."""
    spec: Object = {"replicatedJobs": [_group(role, size, shape, job_spec or {}) for role, size in (groups or GANG).items()]}
    if suspend is not None:
        spec["suspend"] = suspend
    if failure_policy is not None:
        spec["failurePolicy"] = failure_policy
    made: Object = {"conditions": list(conditions), "restarts": restarts}
    if counters is not None:
        zero = {"active": 0, "ready": 0, "succeeded": 0, "failed": 0, "suspended": 0}
        made[counters_key] = [{"name": role, **zero, **values} for role, values in counters.items()]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": _metadata(name, uid=f"uid-{name}", labels=labels, deleting_at=deleting_at),
        "spec": spec,
        "status": made if status is None else status,
    }


def _group(role: str, size: int, shape: str, job_spec: Object) -> Object:
    pods = size if shape == "s2" else 1
    spec = {"completions": pods, "parallelism": pods, "completionMode": "Indexed", "backoffLimit": 0, **job_spec}
    return {"name": role, "replicas": 1 if shape == "s2" else size, "template": {"spec": spec}}


def make_job(
    *conditions: Object,
    role: str = "worker",
    index: int = 0,
    attempt: int = 0,
    status: Object | None = None,
    uid: str = "",
    jobset: str = NAME,
    **spec: Any,
) -> Object:
    """A Job of a JobSet."""
    name = f"{jobset}-{role}-{index}"
    made = _metadata(name, uid=uid or f"uid-{name}-{attempt}", labels=_jobset_labels(jobset, role, attempt, index, 1))
    made["ownerReferences"] = [{"kind": "JobSet", "name": jobset, "uid": f"uid-{jobset}"}]
    return {"kind": "Job", "metadata": made, "spec": spec, "status": {"conditions": list(conditions), **(status or {})}}


def make_plain_job(
    *conditions: Object,
    completions: int = 1,
    status: Any = None,
    suspend: bool | None = None,
    deleting_at: float | None = None,
    **spec: Any,
) -> Object:
    """A Job that is a workload of its own."""
    body = {"completions": completions, "parallelism": completions, "backoffLimit": 0, **spec}
    if suspend is not None:
        body["suspend"] = suspend
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(NAME, uid=f"uid-{NAME}", deleting_at=deleting_at),
        "spec": body,
        "status": {"conditions": list(conditions)} if status is None else status,
    }


def make_pod(
    role: str = "worker",
    index: int = 0,
    phase: str = "Running",
    *,
    exit_code: int | None = None,
    reason: str = "",
    pod_reason: str = "",
    message: str = "",
    pod_message: str = "",
    waiting: str = "",
    conditions: Iterable[Object] = (),
    node: str = "node-1",
    attempt: int = 0,
    shape: str = "s2",
    uid: str = "",
    suffix: str = "abcde",
    created_at: float = 0,
    finished_at: float = 10,
    deleting_at: float | None = None,
    grace: int = 30,
    plain: bool = False,
    annotations_only: bool = False,
    jobset: str = NAME,
    **spec: Any,
) -> Object:
    """A pod of a JobSet, or with `plain` of a plain Job. With `exit_code` its container has terminated."""
    job_index, completion = (index, 0) if shape == "s1" else (0, index)
    keys = {"batch.kubernetes.io/job-completion-index": str(completion)}
    name = f"{jobset}-{completion}-{suffix}" if plain else f"{jobset}-{role}-{job_index}-{completion}-{suffix}"
    if not plain:
        keys |= _jobset_labels(jobset, role, attempt, job_index, 3 if shape == "s1" and role != "control" else 1)
    made = _metadata(name, uid=uid or f"uid-{name}-{attempt}", created_at=created_at, deleting_at=deleting_at, grace=grace)
    made["annotations" if annotations_only else "labels"] = keys
    state: Object = {"running": {"startedAt": stamp(created_at + 1)}}
    if exit_code is not None:
        default = "Completed" if exit_code == 0 else "Error"
        ended = {"exitCode": exit_code, "reason": reason or default, "startedAt": stamp(created_at + 1)}
        state = {"terminated": {**ended, "finishedAt": stamp(finished_at), "message": message}}
    if waiting:
        state = {"waiting": {"reason": waiting, "message": message}}
    containers = [{"name": "main", "state": state, "restartCount": 0, "image": "app:1"}]
    status: Object = {
        "phase": phase,
        "conditions": list(conditions),
        "containerStatuses": [] if (phase == "Pending" and not waiting) or pod_reason == "Evicted" else containers,
        "startTime": stamp(created_at),
    }
    status |= {key: value for key, value in (("reason", pod_reason), ("message", pod_message)) if value}
    body = {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"kind": "Pod", "metadata": made, "spec": body, "status": status}


def make_gang_pods(phase: str = "Running", *, groups: Mapping[str, int] | None = None, **fields: Any) -> list[Object]:
    return [make_pod(role, index, phase, **fields) for role, size in (groups or GANG).items() for index in range(size)]


def make_event(
    reason: str, message: str, about: Object | None = None, *, count: int | None = 1, at: float = 5, first_at: float = 1
) -> Object:
    about = about or make_jobset()
    meta = about["metadata"]
    return {
        "kind": "Event",
        "metadata": _metadata(f"{meta['name']}.{reason}", uid=f"uid-{meta['name']}-{reason}-{at}"),
        "involvedObject": {"kind": about["kind"], "name": meta["name"], "uid": meta["uid"]},
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": count,
        "firstTimestamp": stamp(first_at),
        "lastTimestamp": stamp(at),
    }


def make_queued(
    *conditions: Object, active: bool = True, queue: str = "lq", checks: Iterable[Object] = (), **status: Any
) -> Object:
    """Kueue's Workload of the JobSet."""
    return {
        "kind": "Workload",
        "metadata": _metadata("jobset-js-1-abcde", uid="uid-workload")
        | {"ownerReferences": [{"kind": "JobSet", "name": NAME, "uid": f"uid-{NAME}"}]},
        "spec": {"active": active, "queueName": queue},
        "status": {"conditions": list(conditions), "admissionChecks": list(checks), **status},
    }


def observe(
    workload: Any = None,
    pods: Iterable[Object | PodRecord] = (),
    *,
    jobs: Iterable[Object] = (),
    events: Iterable[Object] = (),
    admission: Object | None = None,
    was_seen: bool = True,
    at: float = 20,
) -> Observation:
    """Pods are as a single list would show them, unless they are records."""
    records = tuple(pod if isinstance(pod, PodRecord) else record(pod) for pod in pods)
    return Observation(
        at=moment(at),
        workload=workload,
        was_seen=was_seen,
        jobs=tuple(jobs),
        pods=records,
        events=tuple(events),
        admission=admission,
    )


def record(*states: Object, deleted: bool = False, at: float = 0) -> PodRecord:
    """One pod, watched through these states, a second apart."""
    records: dict[str, PodRecord] = {}
    for second, state in enumerate(states):
        records = remember(records, "MODIFIED", state, moment(at + second))
    if deleted:
        records = remember(records, "DELETED", states[-1], moment(at + len(states)))
    return next(iter(records.values()))


def _metadata(
    name: str,
    *,
    uid: str,
    labels: Mapping[str, str] | None = None,
    created_at: float = 0,
    deleting_at: float | None = None,
    grace: int = 0,
) -> Object:
    """`deleting_at` is when the deletion was asked for."""
    made: Object = {"name": name, "namespace": "default", "uid": uid, "creationTimestamp": stamp(created_at)}
    if labels:
        made["labels"] = dict(labels)
    if deleting_at is not None:
        made |= {"deletionTimestamp": stamp(deleting_at + grace), "deletionGracePeriodSeconds": grace}
    return made


def _jobset_labels(jobset: str, role: str, attempt: int, job_index: int, replicas: int) -> dict[str, str]:
    prefix = "jobset.sigs.k8s.io"
    return {
        f"{prefix}/jobset-name": jobset,
        f"{prefix}/jobset-uid": f"uid-{jobset}",
        f"{prefix}/replicatedjob-name": role,
        f"{prefix}/replicatedjob-replicas": str(replicas),
        f"{prefix}/job-index": str(job_index),
        f"{prefix}/restart-attempt": str(attempt),
    }
