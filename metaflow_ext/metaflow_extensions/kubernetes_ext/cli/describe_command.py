"""`kubernetes describe` and `kubernetes why`: one workload as it is, and why it waits or failed; from the cluster while it is
there, else from the metadata that its step process left."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from ..status import record
from ..status.describe import MARGIN
from ..status.model import WorkloadStatus
from ..status.reading import moment
from ..status.reading import text as text_at
from ..status.stalled import HINT
from . import failure_report
from .subjects import Subject, found
from .tables import seconds_since, short_age, table
from .targets import parse

RANK_COLUMNS = ("RANK", "ROLE", "POD", "STATUS", "RESTARTS", "EXIT", "REASON", "NODE", "AGE")
_MOST_HAPPENED = 10


def describe(obj: Any, text: str, as_json: bool) -> None:
    now = datetime.now(timezone.utc)
    there = found(obj.flow.name, parse(obj.flow.name, text))
    if as_json:
        print(json.dumps([{**names(one), **record.as_json(one.status)} for one in there], indent=2))
    else:
        print("\n\n".join("\n".join(description(one, now)) for one in there))


def why(obj: Any, text: str, as_json: bool) -> None:
    there = found(obj.flow.name, parse(obj.flow.name, text))
    if as_json:
        print(json.dumps([answer(one) for one in there], indent=2))
    else:
        print("\n\n".join("\n".join([f"{one.pathspec}:", *reason(one.status), *happened(one)]) for one in there))


def answer(one: Subject) -> dict[str, Any]:
    status = record.as_json(one.status)
    kept = {key: status[key] for key in ("phase", "size", "waiting", "stalled", "failure", "ranks")}
    return {**one.whose, **kept, "timeline": [*one.timeline]}


def description(one: Subject, now: datetime) -> list[str]:
    """As `kubectl describe` writes it, then a line for each rank."""
    status, whose, fields = one.status, one.whose, names(one)
    created = text_at(one.manifest, "metadata", "creationTimestamp")
    heads = [
        ("Name", fields["name"]), ("Kind", fields["kind"]), ("Namespace", fields["namespace"]),
        ("Task", f"{whose['flow']}/{one.pathspec} (attempt {whose['attempt'] or '?'})"),
        ("Age", short_age(seconds_since(created, now)) if created else ""), ("Status", f"{status.phase}, stalled" if _is_stalled(status) else str(status.phase)),
    ]  # fmt: skip
    lines = [f"{name + ':':11}{value}" for name, value in heads if value]
    lines.append(f"{'Reason:':11}{reason(status)[0]}")
    if one.observation is None:
        lines.append("It is not in the cluster any more: this is what its run has left in Metaflow's metadata.")
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
    if status.stalled is not None and _is_stalled(status):
        return [status.stalled.summary, *(f"{MARGIN}{line}" for line in status.stalled.lines), HINT]
    if status.waiting is not None:
        return [line for line in (status.waiting.summary, status.waiting.detail) if line]
    return [f"{status.phase}." if not status.message else f"{status.phase}: {status.message}"]


def _is_stalled(status: WorkloadStatus) -> bool:
    return status.stalled is not None and not status.is_terminal


def happened(one: Subject) -> list[str]:
    """The timeline, seconds since its beginning first: its first entry and the last ones."""
    summary = one.status.failure.summary if one.status.failure else ""
    told = [(moment(entry, "at"), text_at(entry, "what")) for entry in one.timeline]
    entries = [(at, what) for at, what in told if at is not None and what != summary]
    if not entries:
        return []
    start = entries[0][0]
    shown = entries if len(entries) <= _MOST_HAPPENED else [entries[0], *entries[1 - _MOST_HAPPENED :]]
    ages = [short_age(int((at - start).total_seconds())) for at, _ in shown]
    return [
        "What had happened:",
        *(f"{MARGIN}{age:>4}  {what}" for age, (_, what) in zip(ages, shown, strict=True)),
    ]


def names(one: Subject) -> dict[str, str]:
    """Of the object, and whose it is; "" for what is not known."""
    manifest = one.manifest
    named = {key: text_at(manifest, "metadata", key) for key in ("name", "namespace")}
    return {"name": named["name"], "kind": text_at(manifest, "kind"), "namespace": named["namespace"], **one.whose}
