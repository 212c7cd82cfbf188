"""Which workloads a command is about, found by their labels: never by looking through a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from metaflow.exception import MetaflowException
from metaflow.metaflow_config import KUBERNETES_NAMESPACE

from ..backends.appwrapper import AppWrapperBackend
from ..backends.base import Backend
from ..backends.job import JobBackend
from ..backends.jobset import JobSetBackend
from ..cluster.protocol import ClusterClient
from ..decorators.settings import jobset_resource
from ..errors import Forbidden
from ..runtime.resources import resource_of
from ..runtime.running import RunningJobSet
from ..spec import labels
from ..spec.names import TaskIds, label_value
from ..status.reading import mappings, owner_uids, text, uid


@dataclass(frozen=True)
class Target:
    """A run, a step of it, or a task of that. `rank` is the worker's that the task id names, else None: the whole workload."""

    run_id: str
    step: str = ""
    task_id: str = ""
    rank: int | None = None

    def __str__(self) -> str:
        return "/".join(filter(None, (self.run_id, self.step, self.task_id)))


def parse(flow: str, text: str) -> Target:
    """RUN, RUN/STEP or RUN/STEP/TASK, with or without the flow's name before."""
    parts = text.strip("/").split("/")
    if parts[0] == flow and len(parts) > 1:
        parts = parts[1:]
    if not 1 <= len(parts) <= 3 or not all(parts):
        raise MetaflowException(f"{text!r} is not RUN, RUN/STEP or RUN/STEP/TASK.")
    run_id, step, task_id = (*parts, "", "")[:3]
    control, rank = TaskIds.parse(task_id) if task_id else ("", 0)
    return Target(run_id, step, control, rank or None)


def selector(flow: str, target: Target | None = None, user: str | None = None, further: str = "") -> str:
    """The label selector of these workloads. `further` is one of the user's own."""
    wanted: dict[str, str | None] = {labels.APP_MANAGED_BY: labels.MANAGED_BY, labels.FLOW: flow, labels.USER: user}
    if target is not None:
        wanted |= {labels.RUN_ID: target.run_id, labels.STEP: target.step, labels.TASK_ID: target.task_id}
    found = [f"{key}={label_value(value)}" for key, value in wanted.items() if value]
    return ",".join([*found, further] if further else found)


class Found(NamedTuple):
    """A workload, the backend that reads it, and what it has made where it is an AppWrapper."""

    backend: Backend
    workload: Mapping[str, Any]
    wrapped: Mapping[str, Any] | None = None


def workloads(client: ClusterClient, label_selector: str, namespace: str = KUBERNETES_NAMESPACE) -> Iterator[Found]:
    """One request for each kind. What another workload has made (the Jobs of a JobSet, what an AppWrapper wraps) is none of
    its own."""
    jobset, job = jobset_resource(), JobBackend()
    jobsets = JobSetBackend(group=jobset.group, version=jobset.version)
    listed = {kind.kind: list(_listed(client, kind, label_selector, namespace)) for kind in (jobsets, job)}
    made = {owner: one for objects in listed.values() for one in objects for owner in owner_uids(one)}
    for wrapper in _wrappers(client, label_selector, namespace):
        wrapped = made.get(uid(wrapper))
        yield Found(AppWrapperBackend(wrapped=jobsets if _wraps(wrapper) == "JobSet" else job), wrapper, wrapped)
    for backend in (jobsets, job):
        for workload in listed[backend.kind]:
            if not owner_uids(workload):
                yield Found(backend, workload)


def _listed(client: ClusterClient, backend: Backend, label_selector: str, namespace: str) -> Iterator[Mapping[str, Any]]:
    resource = resource_of(backend)
    if backend.kind == "Job" or client.serves(resource):
        yield from client.list(resource, namespace, label_selector=label_selector).get("items") or ()


def _wrappers(client: ClusterClient, label_selector: str, namespace: str) -> list[Mapping[str, Any]]:
    """None for who may not look at them: flows without AppWrappers need no right to."""
    try:
        return list(_listed(client, AppWrapperBackend(), label_selector, namespace))
    except Forbidden:
        return []


def _wraps(wrapper: Mapping[str, Any]) -> str:
    """The kind of what it wraps."""
    return next((text(one, "template", "kind") for one in mappings(wrapper, "spec", "components")), "")


def look(client: ClusterClient, backend: Backend, workload: Mapping[str, Any]) -> RunningJobSet:
    """The workload with all that the server knows of it now. Watches nothing."""
    running = RunningJobSet(client, backend, workload, namespace=workload["metadata"]["namespace"])
    running.refresh()
    return running


def identity(workload: Mapping[str, Any]) -> dict[str, str]:
    """Whose it is, from the annotations, which have the full values: flow, run_id, step, task_id, attempt, ranks."""
    annotations = (workload.get("metadata") or {}).get("annotations") or {}
    keys = {
        "flow": labels.FLOW, "run_id": labels.RUN_ID, "step": labels.STEP, "task_id": labels.TASK_ID,
        "attempt": labels.ATTEMPT, "ranks": labels.WORLD_SIZE,
    }  # fmt: skip
    return {name: str(annotations.get(key) or "") for name, key in keys.items()}
