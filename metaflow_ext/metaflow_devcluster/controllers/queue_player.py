"""Plays Kueue: makes a Workload for each queued workload, and does with both what the script of their queue says."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .. import kueue
from ..api.patches import merge_patch
from ..cluster import Cluster
from ..errors import NotFound
from ..store import Change
from .events import Recorder
from .manager import Key
from .objects import (
    Object,
    annotations_of,
    condition,
    format_time,
    is_finished_job,
    is_finished_jobset,
    is_true,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    spec_of,
    status_of,
    uid_of,
)


@dataclass
class _Position:
    """Of one workload in its script."""

    steps: tuple[kueue.Step, ...]
    due: datetime.datetime  # of the next step
    done: int = 0


class QueuePlayer:
    """Keys are (resource, namespace, name) of what is queued."""

    first_retry = 0.1

    def __init__(self, cluster: Cluster, now: Callable[[], datetime.datetime]) -> None:
        self._cluster, self._store, self._now = cluster, cluster.store, now
        self._positions: dict[str, _Position] = {}
        self._record = Recorder(self._store, "kueue-jobset-controller", now)

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if not kueue.is_played(self._store):
            return
        if change.resource in kueue.QUEUED and kueue.is_queued(change.object):
            if change.type == "DELETED":
                self._positions.pop(uid_of(change.object), None)
            else:
                yield (change.resource, *key_of(change.object)), 0.0
        elif change.resource == kueue.LOCAL_QUEUES and change.type == "ADDED":
            for resource in kueue.QUEUED:
                for obj in self._store.list(resource, namespace_of(change.object), kueue.is_queued):
                    if labels_of(obj)[kueue.QUEUE_NAME] == name_of(change.object):
                        yield (resource, *key_of(obj)), 0.0

    def reconcile(self, key: Key) -> float | None:
        obj = self._store.find(*key)
        if obj is None or not kueue.is_queued(obj):
            return None
        workload = self._workload(key[0], obj)
        if is_finished_job(obj) or is_finished_jobset(obj):
            self._finish(obj, workload)
            return None
        queue = self._store.find(kueue.LOCAL_QUEUES, namespace_of(obj), labels_of(obj)[kueue.QUEUE_NAME])
        if queue is None:
            self._write(workload, kueue.no_such_queue(labels_of(obj)[kueue.QUEUE_NAME]))
            return None
        return self._play(key[0], obj, workload, self._position(obj, queue))

    def _position(self, obj: Object, queue: Object) -> _Position:
        """The script is read once: a queue that changes has the new one for those that come after."""
        found = self._positions.get(uid_of(obj))
        if found is None:
            text = annotations_of(queue).get(kueue.SCRIPT)
            try:
                steps = kueue.parse_script(text) if text else kueue.ADMIT_AT_ONCE
            except ValueError as error:
                steps = (kueue.Step(conditions={"QuotaReserved": ["False", "Inadmissible", str(error)]}),)
            found = self._positions[uid_of(obj)] = _Position(steps, self._now() + _seconds(steps, 0))
        return found

    def _play(self, resource: str, obj: Object, workload: Object, position: _Position) -> float | None:
        while position.done < len(position.steps):
            wait = (position.due - self._now()).total_seconds()
            if wait > 0:
                return wait
            step = position.steps[position.done]
            workload = self._write(workload, step)
            if step.suspend is not None:
                self._suspend(resource, obj, workload, step.suspend)
            position.done += 1
            position.due += _seconds(position.steps, position.done)
        return None

    def _workload(self, resource: str, obj: Object) -> Object:
        name = f"{kueue.QUEUED[resource]}-{name_of(obj)[:50]}-{uid_of(obj)[:5]}"
        found = self._store.find(kueue.WORKLOADS, namespace_of(obj), name)
        if found is not None:
            return found
        labels, owner = {kueue.JOB_UID: uid_of(obj)}, owner_reference(obj)
        meta = {"name": name, "namespace": namespace_of(obj), "labels": labels, "ownerReferences": [owner]}
        spec = {"active": True, "priority": 0, "queueName": labels_of(obj)[kueue.QUEUE_NAME]}
        made = self._cluster.create(kueue.WORKLOADS, {"metadata": meta, "spec": spec})
        self._record(obj, "Normal", "CreatedWorkload", f"Created Workload: {namespace_of(obj)}/{name}")
        return made

    def _write(self, workload: Object, step: kueue.Step) -> Object:
        """The Workload as the step has it."""
        space, name = key_of(workload)
        if step.spec:
            changed = {**workload, "spec": merge_patch(spec_of(workload), step.spec)}
            workload = self._store.update(kueue.WORKLOADS, changed)
        stamp = format_time(self._now())

        def change(found: Object) -> None:
            status = found["status"] = merge_patch(status_of(found), step.status)
            for kind, (value, reason, message) in step.conditions.items():
                known = condition(found, kind)
                since = known["lastTransitionTime"] if known and known["status"] == value else stamp
                new = {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": since}
                status["conditions"] = [*(c for c in status.get("conditions") or [] if c["type"] != kind), new]

        return self._store.modify(kueue.WORKLOADS, space, name, change, status_only=True)

    def _suspend(self, resource: str, obj: Object, workload: Object, value: bool) -> None:
        try:
            current = self._store.get(resource, *key_of(obj))
        except NotFound:
            return
        if bool(spec_of(current).get("suspend")) == value:
            return
        self._store.update(resource, {**current, "spec": {**spec_of(current), "suspend": value}})
        if value:
            evicted = condition(workload, "Evicted") or {}
            self._record(obj, "Normal", "Stopped", evicted.get("message", ""))
        else:
            self._record(obj, "Normal", "Started", "Admitted by clusterQueue devcluster")

    def _finish(self, obj: Object, workload: Object) -> None:
        if is_true(workload, "Finished"):
            return
        failed = condition(obj, "Failed") if is_true(obj, "Failed") else None
        ended = failed or condition(obj, "Completed") or condition(obj, "Complete") or {}
        words = ["True", "Failed" if failed else "Succeeded", str(ended.get("message", ""))]
        self._write(workload, kueue.Step(conditions={"Finished": words}))


def _seconds(steps: tuple[kueue.Step, ...], number: int) -> datetime.timedelta:
    return datetime.timedelta(seconds=steps[number].after if number < len(steps) else 0.0)
