"""Things that end by time: finished Jobs and JobSets with a ttl, and Events after an hour."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

from ..store import Change, Store
from .manager import Key
from .objects import (
    Object,
    condition,
    is_being_deleted,
    is_finished_job,
    is_finished_jobset,
    key_of,
    parse_time,
    spec_of,
    uid_of,
)

EVENT_LIFE = 3600.0
JOBS, JOBSETS = "jobs.batch", "jobsets.jobset.x-k8s.io"


def seconds_left(obj: Object, now: datetime.datetime) -> float | None:
    """Until a finished object's ttl has passed; None when it has no ttl or has not finished."""
    ttl = spec_of(obj).get("ttlSecondsAfterFinished")
    if ttl is None or is_being_deleted(obj):
        return None
    is_finished = is_finished_jobset(obj) if obj["kind"] == "JobSet" else is_finished_job(obj)
    if not is_finished:
        return None
    entries = [condition(obj, kind) for kind in ("Complete", "Completed", "Failed")]
    times = [parse_time(entry["lastTransitionTime"]) for entry in entries if entry and entry["status"] == "True"]
    ended = max(moment for moment in times if moment)
    return float(ttl) - (now - ended).total_seconds()


class TtlController:
    """Keys are (resource, namespace, name, uid)."""

    first_retry = 1.0

    def __init__(self, store: Store, now: Callable[[], datetime.datetime]) -> None:
        self._store, self._now = store, now

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if change.type == "DELETED":
            return
        if change.resource in (JOBS, JOBSETS):
            if spec_of(change.object).get("ttlSecondsAfterFinished") is not None:
                yield (change.resource, *key_of(change.object), uid_of(change.object)), 0.0
        elif change.resource == "events" and change.type == "ADDED":
            yield ("events", *key_of(change.object), uid_of(change.object)), EVENT_LIFE

    def reconcile(self, key: Key) -> float | None:
        resource, namespace, name, uid = key
        obj = self._store.find(resource, namespace, name)
        if obj is None or uid_of(obj) != uid:
            return None
        if resource == "events":
            self._store.delete(resource, namespace, name)
            return None
        left = seconds_left(obj, self._now())
        if left is None or left > 0:
            return left
        self._store.delete(resource, namespace, name, propagation="Foreground", preconditions={"uid": uid})
        return None
