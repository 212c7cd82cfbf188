"""Binds pods to nodes, first come first served, and says why it can't."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

from ..api.subresources import bind
from ..store import Change, Store
from . import scheduling
from .events import Recorder
from .manager import Key
from .objects import (
    Object,
    condition,
    format_time,
    is_being_deleted,
    is_terminal,
    meta,
    name_of,
    namespace_of,
    spec_of,
)

_ALL: Key = ("pods",)


class Scheduler:
    """One key: all pods that wait are looked at together, in the order of their creation."""

    first_retry = 0.1

    def __init__(self, store: Store, now: Callable[[], datetime.datetime]) -> None:
        self._store, self._now = store, now
        self._record = Recorder(store, "default-scheduler", now)

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        if change.resource in ("nodes", "persistentvolumeclaims"):
            yield _ALL, 0.0
        elif change.resource == "pods":
            waits = not spec_of(change.object).get("nodeName")
            if change.type == "DELETED" or waits or is_terminal(change.object):
                yield _ALL, 0.0

    def reconcile(self, key: Key) -> float | None:
        pods = self._store.list("pods")
        waiting = [pod for pod in pods if not spec_of(pod).get("nodeName") and not is_terminal(pod)]
        waiting = [pod for pod in waiting if not is_being_deleted(pod) and _is_ours(pod)]
        if not waiting:
            return None
        nodes = self._store.list("nodes")
        loads: dict[str, scheduling.Load] = {name_of(node): scheduling.Load() for node in nodes}
        for pod in pods:
            if spec_of(pod).get("nodeName") in loads and not is_terminal(pod):
                loads[spec_of(pod)["nodeName"]].add(pod)
        for pod in sorted(waiting, key=_age):
            found = self._missing_claim(pod, len(nodes)) or scheduling.place(pod, nodes, loads)
            if isinstance(found, scheduling.Placement):
                self._bind(pod, found.node)
                loads[found.node].add(pod)
            else:
                self._refuse(pod, found)
        return None

    def _missing_claim(self, pod: Object, nodes: int) -> scheduling.Refusal | None:
        for volume in spec_of(pod).get("volumes") or []:
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim and self._store.find("persistentvolumeclaims", namespace_of(pod), claim) is None:
                return scheduling.missing_claim(claim, nodes)
        return None

    def _bind(self, pod: Object, node: str) -> None:
        bound = bind(self._store, namespace_of(pod), name_of(pod), node)
        text = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
        self._record(bound, "Normal", "Scheduled", text)

    def _refuse(self, pod: Object, refusal: scheduling.Refusal) -> None:
        known = condition(pod, "PodScheduled")
        if known is not None and (known.get("reason"), known.get("message")) == (refusal.reason, refusal.message):
            return
        stamp = format_time(self._now())

        def change(found: Object) -> None:
            new = {"type": "PodScheduled", "status": "False", "lastProbeTime": None, "lastTransitionTime": stamp}
            _set_condition(found, {**new, "reason": refusal.reason, "message": refusal.message})

        self._store.modify("pods", namespace_of(pod), name_of(pod), change, status_only=True)
        if refusal.reason == "Unschedulable":
            self._record(pod, "Warning", "FailedScheduling", refusal.message)


def _is_ours(pod: Object) -> bool:
    return bool(spec_of(pod).get("schedulerName", "default-scheduler") == "default-scheduler")


def _age(pod: Object) -> tuple[str, int]:
    return meta(pod)["creationTimestamp"], int(meta(pod)["resourceVersion"])


def _set_condition(pod: Object, new: Object) -> None:
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    conditions[:] = [entry for entry in conditions if entry["type"] != new["type"]]
    conditions.append(new)
