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
from .ownership import owns_job, owns_pod
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
    last_seen: KubernetesObject | None = None  # the workload, also when it is gone by now
    was_seen: bool = False
    jobs: Mapping[str, KubernetesObject] = field(default_factory=dict)
    pods: Mapping[str, PodRecord] = field(default_factory=dict)
    events: Mapping[str, KubernetesObject] = field(default_factory=dict)
    admissions: Mapping[str, KubernetesObject] = field(default_factory=dict)
    wrapped: KubernetesObject | None = None
    wrapped_is_gone: bool = False
    killed_by: str = ""

    def observation(self) -> Observation:
        """Of all that the namespace has, what belongs to the workload."""
        owner = self.wrapped or self.last_seen
        return Observation(
            at=self.at,
            workload=self.workload,
            was_seen=self.was_seen,
            jobs=tuple(job for job in self.jobs.values() if owns_job(owner, job)),
            pods=tuple(record for record in self.pods.values() if owns_pod(owner, record.object)),
            events=tuple(self.events.values()),
            admission=self._admission(),
            killed_by=self.killed_by,
            wrapped=self.wrapped,
            wrapped_is_gone=self.wrapped_is_gone,
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
    """One after every line, for the `kind` named `workload`: by default the one that `find` finds."""
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
    if not workload:
        _, workload = find(entries, (kind,)) or (kind, "")
    first = _first(entries, kind, workload)
    start = (created_at(dig(first, "object")) or _EPOCH) if first else _EPOCH
    return TraceState(kind=kind, name=workload, start=start, at=start)


def advance(state: TraceState, entry: Entry) -> TraceState:
    """After one more line. NOTE lines and kinds that nobody asks for only let time pass."""
    state = replace(state, at=state.start + timedelta(seconds=seconds_of(entry)))
    obj, event_type = mapping(entry, "object"), text(entry, "type")
    if event_type not in ("ADDED", "MODIFIED", "DELETED") or not obj:
        return state
    deleted = event_type == "DELETED"
    kind = text(obj, "kind")
    if is_wrapped(obj, state.workload):
        state = replace(state, wrapped=obj, wrapped_is_gone=deleted)
    if kind == state.kind and name(obj) == state.name:
        killer = killed_by(obj) or state.killed_by
        return replace(state, workload=None if deleted else obj, last_seen=obj, was_seen=True, killed_by=killer)
    if kind == "Pod":
        return replace(state, pods=remember(state.pods, event_type, obj, state.at))
    if kind == "Job":
        return replace(state, jobs=_updated(state.jobs, obj, deleted))
    if kind == "Event":
        return replace(state, events=_updated(state.events, obj, deleted))
    if kind == "Workload":
        return replace(state, admissions=_updated(state.admissions, obj, deleted))
    return state


def find(entries: Sequence[Entry], kinds: Sequence[str], workload: str = "") -> tuple[str, str] | None:
    """(kind, name) of what the trace was recorded of, or None: `kinds` has the outermost first.

    The first that appears at t >= 0 and that nothing else in the trace made; what was there before only takes up room. Where all were there
    before, the first one of the outermost kind. With a name, the outermost of that name.
    """
    found = [entry for entry in entries if text(entry, "object", "kind") in kinds and name(dig(entry, "object"))]
    if workload:
        found = [entry for entry in found if name(dig(entry, "object")) == workload]
    else:
        found = [entry for entry in found if not owner_uids(dig(entry, "object"))]
        later = [entry for entry in found if seconds_of(entry) >= 0 and not _was_there_before(entry, found)]
        if later:
            found = [later[0]]
    found.sort(key=lambda entry: kinds.index(text(entry, "object", "kind")))
    return (text(found[0], "object", "kind"), name(dig(found[0], "object"))) if found else None


def _was_there_before(entry: Entry, all_of_them: Sequence[Entry]) -> bool:
    key = uid(dig(entry, "object"))
    return any(seconds_of(one) < 0 and uid(dig(one, "object")) == key for one in all_of_them)


def _updated(objects: Mapping[str, KubernetesObject], obj: KubernetesObject, deleted: bool) -> dict[str, KubernetesObject]:
    key = uid(obj) or name(obj)
    return {k: v for k, v in objects.items() if k != key} if deleted else {**objects, key: obj}


def _first(entries: Sequence[Entry], kind: str, workload: str) -> Entry | None:
    wanted = (kind, workload)
    return next((entry for entry in entries if (text(entry, "object", "kind"), name(dig(entry, "object"))) == wanted), None)


def seconds_of(entry: Entry) -> float:
    """`t`, or 0 where it is no sane number."""
    value = dig(entry, "t")
    return float(value) if isinstance(value, (int, float)) and abs(value) < 1e9 else 0.0
