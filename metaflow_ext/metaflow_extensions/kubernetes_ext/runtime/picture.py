"""Folds watch events of a workload, what it wraps, its Jobs and its pods into an `Observation`. No I/O, no clock.

Pods are never forgotten (`status.pods.remember`): what the watch showed of one that is gone may be the only evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from ..cluster.protocol import WatchEvent
from ..status.appwrapper import is_wrapped
from ..status.model import Observation, PodRecord
from ..status.pods import remember
from ..status.reading import killed_by

WORKLOAD, WRAPPED, JOBS, PODS = "workload", "wrapped", "jobs", "pods"


def uid_of(obj: Mapping[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("uid") or "")


class Picture:
    """`is_missing`: the watch says that the workload is gone, and nobody has confirmed it yet."""

    def __init__(self, workload: Mapping[str, Any]) -> None:
        self.is_missing = False
        self.admission: Mapping[str, Any] | None = None
        self.queued_ahead: int | None = None
        self._uid = uid_of(workload)
        self._workload: Mapping[str, Any] | None = workload
        self._wrapped: Mapping[str, Any] | None = None
        self._wrapped_is_gone = False
        self._jobs: dict[str, Mapping[str, Any]] = {}
        self._pods: dict[str, PodRecord] = {}
        self._events: dict[str, Mapping[str, Any]] = {}
        self._killed_by = ""

    def apply(self, source: str, event: WatchEvent, at: datetime) -> None:
        """`source` is WORKLOAD, WRAPPED, JOBS or PODS."""
        if event.type == "SYNCED":
            items = event.object.get("items") or []
            sync = {WORKLOAD: self._sync_workload, WRAPPED: self._sync_wrapped, JOBS: self._sync_jobs, PODS: self._sync_pods}
            sync[source](items, at)
        elif source == WORKLOAD:
            if uid_of(event.object) == self._uid:
                self._set_workload(event.object, gone=event.type == "DELETED")
        elif source == WRAPPED:
            self._set_wrapped(event.object, gone=event.type == "DELETED")
        elif source == JOBS and event.type == "DELETED":
            self._jobs.pop(uid_of(event.object), None)
        elif source == JOBS:
            self._jobs[uid_of(event.object)] = event.object
        else:
            self._pods = remember(self._pods, event.type, event.object, at)

    def confirm(self, found: Mapping[str, Any] | None) -> None:
        """The answer of a GET: the workload, or None for a 404. Another object of the same name is not ours."""
        self.is_missing = False
        self._workload = found if found is not None and uid_of(found) == self._uid else None

    def add_events(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._events.update((uid_of(event), event) for event in events)

    def observation(self, at: datetime) -> Observation:
        return Observation(
            at=at,
            workload=self._workload,
            was_seen=True,
            jobs=tuple(self._jobs.values()),
            pods=tuple(self._pods.values()),
            events=tuple(self._events.values()),
            admission=self.admission,
            queued_ahead=self.queued_ahead,
            killed_by=self._killed_by,
            wrapped=self._wrapped,
            wrapped_is_gone=self._wrapped_is_gone,
        )

    def _set_workload(self, found: Mapping[str, Any], *, gone: bool) -> None:
        self.is_missing = gone
        self._workload = found
        self._killed_by = killed_by(found) or self._killed_by

    def _sync_workload(self, items: list[Mapping[str, Any]], at: datetime) -> None:
        ours = [item for item in items if uid_of(item) == self._uid]
        self.is_missing = not ours
        if ours:
            self._set_workload(ours[0], gone=False)

    def _set_wrapped(self, found: Mapping[str, Any], *, gone: bool) -> None:
        """What the workload has made, as last seen: of an object that is gone it says what had failed."""
        if is_wrapped(found, self._workload):
            self._wrapped, self._wrapped_is_gone = found, gone

    def _sync_wrapped(self, items: list[Mapping[str, Any]], at: datetime) -> None:
        self._wrapped_is_gone = self._wrapped is not None
        for item in items:
            self._set_wrapped(item, gone=False)

    def _sync_jobs(self, items: list[Mapping[str, Any]], at: datetime) -> None:
        self._jobs = {uid_of(item): item for item in items}

    def _sync_pods(self, items: list[Mapping[str, Any]], at: datetime) -> None:
        present = {uid_of(item) for item in items}
        for item in items:
            self._pods = remember(self._pods, "ADDED", item, at)
        for key, record in list(self._pods.items()):
            if key not in present and not record.deleted:
                self._pods = remember(self._pods, "DELETED", record.object, at)
