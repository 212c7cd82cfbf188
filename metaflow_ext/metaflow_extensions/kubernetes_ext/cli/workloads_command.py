"""`kubernetes list` and `kubernetes kill`: the workloads of this flow, found by their labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Any

from metaflow.exception import MetaflowException
from metaflow.metaflow_config import KUBERNETES_NAMESPACE
from metaflow.plugins.kubernetes.kube_utils import parse_cli_options

from ..backends.base import Backend
from ..backends.job import JobBackend
from ..backends.jobset import JobSetBackend
from ..cluster.client import KubernetesClient
from ..cluster.protocol import ClusterClient
from ..decorators.host_errors import as_metaflow_error
from ..decorators.settings import jobset_resource
from ..runtime.resources import resource_of
from ..spec import labels
from ..spec.names import label_value
from ..status.model import Observation

COLUMNS = ("NAME", "KIND", "STEP", "TASK", "ATTEMPT", "RANKS", "STATUS", "AGE")


@dataclass(frozen=True)
class Row:
    """One workload. `age` in seconds."""

    name: str
    kind: str
    namespace: str
    run_id: str
    step: str
    task_id: str
    attempt: str
    ranks: str
    status: str
    age: int


def selector(flow: str, run_id: str | None, user: str | None) -> str:
    wanted = {labels.APP_MANAGED_BY: labels.MANAGED_BY, labels.FLOW: flow, labels.RUN_ID: run_id, labels.USER: user}
    return ",".join(f"{key}={label_value(value)}" for key, value in wanted.items() if value)


def row(workload: Mapping[str, Any], backend: Backend, now: datetime) -> Row:
    metadata = workload.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    status = backend.reduce(Observation(at=now, workload=workload, was_seen=True))
    return Row(
        name=str(metadata.get("name")),
        kind=backend.kind,
        namespace=str(metadata.get("namespace")),
        run_id=annotations.get(labels.RUN_ID, ""),
        step=annotations.get(labels.STEP, ""),
        task_id=annotations.get(labels.TASK_ID, ""),
        attempt=annotations.get(labels.ATTEMPT, ""),
        ranks=annotations.get(labels.WORLD_SIZE, ""),
        status=str(status.phase),
        age=_age(metadata.get("creationTimestamp"), now),
    )


def table(rows: list[Row]) -> list[str]:
    """As kubectl prints: columns in capitals, as wide as they must be."""
    cells = [COLUMNS] + [(r.name, r.kind, r.step, r.task_id, r.attempt, r.ranks, r.status, short_age(r.age)) for r in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(len(COLUMNS))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def short_age(seconds: int) -> str:
    """Kubernetes' way: 12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size * (2 if unit != "d" else 1):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def list_workloads(obj: Any, run_id: str | None, user: str | None, my_runs: bool, as_json: bool) -> None:
    flow, run_id, user = parse_cli_options(obj.flow.name, run_id, user, my_runs, obj.echo)
    now = datetime.now(timezone.utc)
    with as_metaflow_error():
        client = KubernetesClient()
        try:
            found = [row(workload, backend, now) for backend, workload in _workloads(client, selector(flow, run_id, user))]
        finally:
            client.close()
    unfinished = [one for one in found if one.status not in ("Succeeded", "Failed")]
    if as_json:
        print(json.dumps([asdict(one) for one in unfinished], indent=2))
    elif unfinished:
        print("\n".join(table(unfinished)))
    else:
        obj.echo("No unfinished Kubernetes tasks found.", err=True)


def kill_workloads(obj: Any, run_id: str | None, user: str | None, my_runs: bool) -> None:
    flow, run_id, user = parse_cli_options(obj.flow.name, run_id, user, my_runs, obj.echo)
    if (run_id or "").startswith("argo-") or user == "argo-workflows":
        raise MetaflowException("Runs of Argo Workflows are ended with *argo-workflows terminate*.")
    now = datetime.now(timezone.utc)
    killed = 0
    with as_metaflow_error():
        client = KubernetesClient()
        try:
            for backend, workload in _workloads(client, selector(flow, run_id, user)):
                found = row(workload, backend, now)
                if found.status in ("Succeeded", "Failed"):
                    continue
                uid = str(workload["metadata"].get("uid", ""))
                client.delete(resource_of(backend), found.namespace, found.name, propagation="Background", uid=uid)
                print(f"{found.kind} {found.name} of step {found.step} (task {found.task_id}) deleted with its pods.")
                killed += 1
        finally:
            client.close()
    if not killed:
        obj.echo("No unfinished Kubernetes tasks found.", err=True)


def _workloads(client: ClusterClient, label_selector: str) -> Iterator[tuple[Backend, Mapping[str, Any]]]:
    jobset = jobset_resource()
    backends: tuple[Backend, ...] = (JobSetBackend(group=jobset.group, version=jobset.version), JobBackend())
    for backend in backends:
        resource = resource_of(backend)
        if backend.kind == "JobSet" and not client.serves(resource):
            continue
        for workload in client.list(resource, KUBERNETES_NAMESPACE, label_selector=label_selector).get("items") or ():
            if not _is_child(workload):
                yield backend, workload


def _is_child(workload: Mapping[str, Any]) -> bool:
    """A Job of a JobSet carries the JobSet's labels."""
    return labels.JOBSET_NAME in ((workload.get("metadata") or {}).get("labels") or {})


def _age(created: Any, now: datetime) -> int:
    try:
        return int((now - datetime.fromisoformat(str(created).replace("Z", "+00:00"))).total_seconds())
    except ValueError:
        return 0
