"""Recorded watch events, one after the other, as the Observations that a watcher would have had: for tests and for replaying.

A trace is a list of `{"t": seconds since the workload was created, "type": ADDED|MODIFIED|DELETED|NOTE, "object": {...}}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

from .appwrapper import is_wrapped
from .model import KubernetesObject, Observation, PodRecord, WorkloadStatus
from .pods import remember
from .reading import created_at, dig, killed_by, mapping, name, owner_uids, text, uid

Entry = Mapping[str, Any]
Reducer = Callable[[Observation, "WorkloadStatus | None"], WorkloadStatus]
_EPOCH = datetime(2000, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class TraceState:
    """What has been seen so far. Objects by uid; `start` is the moment of t = 0."""

    kind: str
    name: str
    start: datetime
    at: datetime
    workload: KubernetesObject | None = None
    was_seen: bool = False
    jobs: Mapping[str, KubernetesObject] = field(default_factory=dict)
    pods: Mapping[str, PodRecord] = field(default_factory=dict)
    events: Mapping[str, KubernetesObject] = field(default_factory=dict)
    admissions: Mapping[str, KubernetesObject] = field(default_factory=dict)
    wrapped: KubernetesObject | None = None
    killed_by: str = ""

    def observation(self) -> Observation:
        return Observation(
            at=self.at,
            workload=self.workload,
            was_seen=self.was_seen,
            jobs=tuple(self.jobs.values()),
            pods=tuple(self.pods.values()),
            events=tuple(self.events.values()),
            admission=self._admission(),
            killed_by=self.killed_by,
            wrapped=self.wrapped,
        )

    def _admission(self) -> KubernetesObject | None:
        """Kueue's Workload of this object, not of another one in the namespace."""
        owner = uid(self.workload)
        return next((one for one in self.admissions.values() if owner and owner in owner_uids(one)), None)


def parse_trace(lines: Iterable[str]) -> list[Entry]:
    """From JSON lines; lines that are no JSON objects are left out."""
    entries: list[Entry] = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def observations(entries: Sequence[Entry], kind: str = "JobSet", workload: str = "") -> Iterator[Observation]:
    """One after every line, for the `kind` named `workload`: by default the first one that was created at t >= 0."""
    state = begin(entries, kind, workload)
    for entry in entries:
        state = advance(state, entry)
        yield state.observation()


def replay(entries: Sequence[Entry], reduce: Reducer, kind: str = "JobSet", workload: str = "") -> Iterator[WorkloadStatus]:
    """The verdict after every line, each knowing the one before."""
    status: WorkloadStatus | None = None
    for observation in observations(entries, kind, workload):
        status = reduce(observation, status)
        yield status


def begin(entries: Sequence[Entry], kind: str = "JobSet", workload: str = "") -> TraceState:
    """Before the first line."""
    first = _first(entries, kind, workload)
    start = (created_at(dig(first, "object")) or _EPOCH) if first else _EPOCH
    return TraceState(kind=kind, name=workload or name(dig(first, "object")), start=start, at=start)


def advance(state: TraceState, entry: Entry) -> TraceState:
    """After one more line. NOTE lines and kinds that nobody asks for only let time pass."""
    state = replace(state, at=state.start + timedelta(seconds=seconds_of(entry)))
    obj, event_type = mapping(entry, "object"), text(entry, "type")
    if event_type not in ("ADDED", "MODIFIED", "DELETED") or not obj:
        return state
    deleted = event_type == "DELETED"
    kind = text(obj, "kind")
    if is_wrapped(obj, state.workload):
        state = replace(state, wrapped=obj)
    if kind == state.kind and name(obj) == state.name:
        killer = killed_by(obj) or state.killed_by
        return replace(state, workload=None if deleted else obj, was_seen=True, killed_by=killer)
    if kind == "Pod":
        return replace(state, pods=remember(state.pods, event_type, obj, state.at))
    if kind == "Job":
        return replace(state, jobs=_updated(state.jobs, obj, deleted))
    if kind == "Event":
        return replace(state, events=_updated(state.events, obj, deleted))
    if kind == "Workload":
        return replace(state, admissions=_updated(state.admissions, obj, deleted))
    return state


def workload_kind(entries: Sequence[Entry], kinds: Sequence[str], workload: str = "") -> str | None:
    """The first of `kinds` that the trace has one of: list the outermost first. Jobs and JobSets that others own don't count."""
    for kind in kinds:
        found = [dig(entry, "object") for entry in entries if text(entry, "object", "kind") == kind]
        if any(not owner_uids(obj) and (not workload or name(obj) == workload) for obj in found):
            return kind
    return None


def _updated(objects: Mapping[str, KubernetesObject], obj: KubernetesObject, deleted: bool) -> dict[str, KubernetesObject]:
    key = uid(obj) or name(obj)
    return {k: v for k, v in objects.items() if k != key} if deleted else {**objects, key: obj}


def _first(entries: Sequence[Entry], kind: str, workload: str) -> Entry | None:
    found = [
        entry
        for entry in entries
        if text(entry, "object", "kind") == kind
        and (text(entry, "object", "metadata", "name") == workload if workload else not owner_uids(dig(entry, "object")))
    ]
    return next((entry for entry in found if seconds_of(entry) >= 0), found[0] if found else None)


def seconds_of(entry: Entry) -> float:
    """`t`, or 0 where it is no sane number."""
    value = dig(entry, "t")
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else 0.0
