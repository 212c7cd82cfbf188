"""`kubernetes describe` and `kubernetes why`: one workload as it is now, and why it waits or failed; from the cluster while it is
there, else from the metadata that its step process left."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from metaflow.exception import MetaflowException

from ..backends.base import Backend
from ..cluster.client import KubernetesClient
from ..decorators.host_errors import as_metaflow_error
from ..status.model import WorkloadStatus
from . import failure_report
from .rank_records import failure_fields
from .tables import seconds_since, short_age, table
from .targets import Target, identity, look, parse, selector, workloads

RANK_COLUMNS = ("RANK", "ROLE", "POD", "STATUS", "RESTARTS", "EXIT", "REASON", "NODE", "AGE")


def describe(obj: Any, text: str, as_json: bool) -> None:
    target = parse(obj.flow.name, text)
    found = list(_living(obj.flow.name, target))
    if not found:
        raise MetaflowException(
            f"No workload of {target} is in the cluster. `kubernetes why {target}` tells what became of it."
        )
    now = datetime.now(timezone.utc)
    if as_json:
        print(json.dumps([fields(workload, status) for _, workload, status in found], indent=2))
    else:
        print("\n\n".join("\n".join(description(backend.kind, workload, status, now)) for backend, workload, status in found))


def why(obj: Any, text: str, as_json: bool) -> None:
    target = parse(obj.flow.name, text)
    answers: list[dict[str, Any]] = []
    reports: list[list[str]] = []
    for _, workload, status in _living(obj.flow.name, target):
        answers.append({**identity(workload), **verdict(status)})
        reports.append(reason(status))
    seen = {(answer["step"], answer["task_id"]) for answer in answers}
    for answer in _remembered(obj.flow.name, target):
        if (answer["step"], answer["task_id"]) not in seen:
            answers.append(answer)
            reports.append(recollection(answer))
    if not answers:
        raise MetaflowException(f"Nothing of {target} is in the cluster, and no failure of it is in Metaflow's metadata.")
    if as_json:
        print(json.dumps(answers, indent=2))
    else:
        heads = [f"{answer['run_id']}/{answer['step']}/{answer['task_id']}:" for answer in answers]
        print("\n\n".join("\n".join([head, *lines]) for head, lines in zip(heads, reports, strict=True)))


def description(kind: str, workload: Mapping[str, Any], status: WorkloadStatus, now: datetime) -> list[str]:
    """As `kubectl describe` writes it, then a line for each rank."""
    metadata, whose = workload["metadata"], identity(workload)
    age = short_age(seconds_since(metadata.get("creationTimestamp"), now))
    heads = [
        ("Name", metadata["name"]), ("Kind", kind), ("Namespace", metadata["namespace"]),
        ("Task", f"{whose['flow']}/{whose['run_id']}/{whose['step']}/{whose['task_id']} (attempt {whose['attempt']})"),
        ("Age", age), ("Status", status.phase),
    ]  # fmt: skip
    lines = [f"{name + ':':11}{value}" for name, value in heads]
    lines += [f"{'Reason:':11}{line}" if not index else f"{'':11}{line}" for index, line in enumerate(reason(status)[:1])]
    rows = [
        (
            rank.rank, rank.role, rank.pod, rank.phase, rank.restarts, rank.exit_code, rank.reason, rank.node,
            short_age(seconds_since(rank.started_at.isoformat(), now)) if rank.started_at else None,
        )
        for rank in status.ranks
    ]  # fmt: skip
    return [*lines, "", *table(RANK_COLUMNS, rows)] if rows else lines


def reason(status: WorkloadStatus) -> list[str]:
    """Why it is in the state that it is in."""
    if status.failure is not None:
        return failure_report.lines(status)
    if status.waiting is not None:
        return [line for line in (status.waiting.summary, status.waiting.detail) if line]
    return [f"{status.phase}." if not status.message else f"{status.phase}: {status.message}"]


def verdict(status: WorkloadStatus) -> dict[str, Any]:
    waiting = status.waiting
    return {
        "phase": str(status.phase),
        "waiting": waiting
        and {
            "category": str(waiting.category), "summary": waiting.summary, "detail": waiting.detail,
            "since": waiting.since and waiting.since.isoformat(), "is_hopeless": waiting.is_hopeless,
        },
        "failure": failure_fields(status.failure) if status.failure else None,
    }  # fmt: skip


def fields(workload: Mapping[str, Any], status: WorkloadStatus) -> dict[str, Any]:
    metadata = workload["metadata"]
    ranks = [
        {key: value.isoformat() if isinstance(value, datetime) else value for key, value in asdict(rank).items()}
        for rank in status.ranks
    ]
    names = {"name": metadata["name"], "kind": workload["kind"], "namespace": metadata["namespace"]}
    return {**names, **identity(workload), **verdict(status), "ranks": ranks}


def recollection(answer: Mapping[str, Any]) -> list[str]:
    failure = answer["failure"]
    last = [f"{failure_report.MARGIN}{line}" for line in failure.get("last_lines") or []][-failure_report.MAX_LAST_LINES :]
    return [failure["summary"], *(["Its last lines:", *last] if last else []), failure["resolution"]]


def _living(flow: str, target: Target) -> Iterator[tuple[Backend, Mapping[str, Any], WorkloadStatus]]:
    with as_metaflow_error():
        client = KubernetesClient()
        try:
            for backend, workload in workloads(client, selector(flow, target)):
                yield backend, workload, look(client, backend, workload).status
        finally:
            client.close()


def _remembered(flow: str, target: Target) -> Iterator[dict[str, Any]]:
    """The failures that step processes have left as metadata of control's task."""
    from metaflow import Run, namespace
    from metaflow.exception import MetaflowNotFound

    namespace(None)
    try:
        run = Run(f"{flow}/{target.run_id}")
    except MetaflowNotFound:
        return
    for step in run:
        for task in step if target.step in ("", step.id) else ():
            stored = task.metadata_dict.get("kubernetes-failure")
            if stored and target.task_id in ("", task.id):
                whose = {"flow": flow, "run_id": run.id, "step": step.id, "task_id": task.id}
                yield {**whose, "phase": "Failed", "waiting": None, "failure": json.loads(stored)}
