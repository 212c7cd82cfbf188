"""Which workloads a command is about, found by their labels: never by looking through a namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from metaflow.exception import MetaflowException
from metaflow.metaflow_config import KUBERNETES_NAMESPACE

from ..backends.base import Backend
from ..backends.job import JobBackend
from ..backends.jobset import JobSetBackend
from ..cluster.protocol import ClusterClient
from ..decorators.settings import jobset_resource
from ..runtime.resources import resource_of
from ..runtime.running import RunningJobSet
from ..spec import labels
from ..spec.names import TaskIds, label_value


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


def workloads(
    client: ClusterClient, label_selector: str, namespace: str = KUBERNETES_NAMESPACE
) -> Iterator[tuple[Backend, Mapping[str, Any]]]:
    """One request for each kind. The Jobs of a JobSet are not workloads of their own."""
    jobset = jobset_resource()
    backends: tuple[Backend, ...] = (JobSetBackend(group=jobset.group, version=jobset.version), JobBackend())
    for backend in backends:
        resource = resource_of(backend)
        if backend.kind == "JobSet" and not client.serves(resource):
            continue
        for workload in client.list(resource, namespace, label_selector=label_selector).get("items") or ():
            if labels.JOBSET_NAME not in ((workload.get("metadata") or {}).get("labels") or {}):
                yield backend, {"apiVersion": backend.api_version, "kind": backend.kind, **workload}


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
