"""What happens to pods when their node is lost: taints, eviction by taint, and removal when the Node is gone.

A node is lost when somebody writes Ready "Unknown" (or "False") into its status. As on a real cluster, nobody but
the node itself ends the pods that are evicted from it; if it is lost they hang until the Node object is deleted.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable
from math import inf

from ..errors import NotFound
from ..store import Change, Store
from .delays import Delays
from .events import Recorder
from .manager import Key
from .objects import (
    Object,
    condition,
    format_time,
    is_being_deleted,
    is_terminal,
    key_of,
    name_of,
    namespace_of,
    parse_time,
    spec_of,
)
from .scheduling import tolerates

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
_OURS = (UNREACHABLE, NOT_READY)


def wanted_taints(node: Object, now: datetime.datetime) -> list[Object]:
    """The node's taints as they should be, given its Ready condition; those already there keep their time."""
    taints = [taint for taint in spec_of(node).get("taints") or [] if taint["key"] not in _OURS]
    ready = condition(node, "Ready")
    if ready is None or ready["status"] == "True":
        return taints
    key = UNREACHABLE if ready["status"] == "Unknown" else NOT_READY
    present = {(taint["key"], taint["effect"]): taint for taint in spec_of(node).get("taints") or []}
    for effect in ("NoSchedule", "NoExecute"):
        new = {"key": key, "effect": effect, "timeAdded": format_time(now)}
        taints.append(present.get((key, effect), new))
    return taints


def eviction_delay(pod: Object, node: Object, now: datetime.datetime, longest: float = inf) -> float | None:
    """Seconds until the node's NoExecute taints evict a pod; None when it tolerates them for ever."""
    delays = []
    for taint in spec_of(node).get("taints") or []:
        if taint["effect"] != "NoExecute":
            continue
        matching = [entry for entry in spec_of(pod).get("tolerations") or [] if tolerates(entry, taint)]
        bounded = [entry["tolerationSeconds"] for entry in matching if entry.get("tolerationSeconds") is not None]
        if matching and not bounded:
            continue
        added = parse_time(taint.get("timeAdded")) or now
        delays.append(min([*bounded, longest] if bounded else [0]) - (now - added).total_seconds())
    return min(delays) if delays else None


class NodeLifecycle:
    """Keys are ("node", name) and ("pod", namespace, name)."""

    first_retry = 0.1

    def __init__(self, store: Store, now: Callable[[], datetime.datetime], delays: Delays) -> None:
        self._store, self._now, self._delays = store, now, delays
        self._record = Recorder(store, "taint-eviction-controller", now)

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        obj = change.object
        if change.resource == "nodes":
            if change.type != "DELETED":
                yield ("node", name_of(obj)), 0.0
            for pod in self._store.list("pods", None, lambda pod: spec_of(pod).get("nodeName") == name_of(obj)):
                yield ("pod", *key_of(pod)), self._delays.orphaned_pods if change.type == "DELETED" else 0.0
        elif change.resource == "pods" and change.type != "DELETED" and not is_terminal(obj):
            node = spec_of(obj).get("nodeName")
            if node and self._store.find("nodes", None, node) is None:
                yield ("pod", *key_of(obj)), self._delays.orphaned_pods
            elif node:
                yield ("pod", *key_of(obj)), 0.0
            elif is_being_deleted(obj):
                yield ("pod", *key_of(obj)), self._delays.unscheduled_pods

    def reconcile(self, key: Key) -> float | None:
        if key[0] == "node":
            self._taint(key[1])
            return None
        pod = self._store.find("pods", key[1], key[2])
        if pod is None or is_terminal(pod):
            return None
        name = spec_of(pod).get("nodeName")
        if not name:
            if is_being_deleted(pod):
                self._fail(pod, None)
            return None
        node = self._store.find("nodes", None, name)
        if node is None:
            self._fail(pod, ("DeletionByPodGC", "PodGC: node no longer exists"))
            self._delete(pod, grace_seconds=0)
            return None
        return self._evict(pod, node)

    def _taint(self, name: str) -> None:
        node = self._store.find("nodes", None, name)
        if node is None:
            return
        wanted = wanted_taints(node, self._now())
        if wanted != (spec_of(node).get("taints") or []):
            spec = {key: value for key, value in spec_of(node).items() if key != "taints"}
            self._store.update("nodes", {**node, "spec": {**spec, **({"taints": wanted} if wanted else {})}})

    def _evict(self, pod: Object, node: Object) -> float | None:
        delay = eviction_delay(pod, node, self._now(), self._delays.lost_node)
        if delay is None or is_being_deleted(pod):
            return None
        if delay > 0:
            return delay
        text = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        self._record(pod, "Normal", "TaintManagerEviction", text)
        self._disrupt(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", None)
        self._delete(pod)
        return None

    def _fail(self, pod: Object, disruption: tuple[str, str] | None) -> None:
        """End a pod that no node will end."""
        if disruption:
            self._disrupt(pod, *disruption, "Failed")
        else:
            self._store.modify("pods", namespace_of(pod), name_of(pod), _set_failed, status_only=True)

    def _disrupt(self, pod: Object, reason: str, message: str, phase: str | None) -> None:
        stamp = format_time(self._now())

        def change(found: Object) -> None:
            status = found.setdefault("status", {})
            if phase:
                status["phase"] = phase
            conditions = [entry for entry in status.get("conditions") or [] if entry["type"] != "DisruptionTarget"]
            new = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
            status["conditions"] = [*conditions, {**new, "reason": reason, "message": message}]

        self._store.modify("pods", namespace_of(pod), name_of(pod), change, status_only=True)

    def _delete(self, pod: Object, grace_seconds: int | None = None) -> None:
        try:
            self._store.delete("pods", namespace_of(pod), name_of(pod), grace_seconds=grace_seconds)
        except NotFound:
            return


def _set_failed(pod: Object) -> None:
    pod.setdefault("status", {})["phase"] = "Failed"
