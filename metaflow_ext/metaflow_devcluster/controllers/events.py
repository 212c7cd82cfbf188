"""Events: made from plain values, and counted up when the same thing happens to the same object again.

Only text that real controllers write belongs here; clients match on it.
"""

from __future__ import annotations

import datetime
import itertools
import socket
from collections.abc import Callable

from ..errors import ApiError, NotFound
from ..store import Store
from .objects import Object, format_micro_time, format_time, meta, name_of, namespace_of

_serial = itertools.count(1)


def reference(obj: Object, field_path: str = "") -> Object:
    """`involvedObject` of an Event about this object."""
    found: Object = {"kind": obj["kind"], "name": name_of(obj), "uid": meta(obj).get("uid", "")}
    if namespace_of(obj):
        found["namespace"] = namespace_of(obj)
    found["apiVersion"] = obj["apiVersion"]
    found["resourceVersion"] = meta(obj).get("resourceVersion", "")
    if field_path:
        found["fieldPath"] = field_path
    return found


def event(
    involved: Object,
    *,
    type: str,
    reason: str,
    message: str,
    component: str,
    host: str = "",
    now: datetime.datetime,
) -> Object:
    """A core/v1 Event; those of the scheduler come from the newer API and have an eventTime and no count."""
    space = involved.get("namespace") or "default"
    stamp = format(int(now.timestamp() * 1e9) + next(_serial), "x")
    found: Object = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": f"{involved['name']}.{stamp}", "namespace": space},
        "involvedObject": involved,
        "reason": reason,
        "message": message[:1024],
        "type": type,
    }
    if component == "default-scheduler":
        found.update(source={}, firstTimestamp=None, lastTimestamp=None, eventTime=format_micro_time(now))
        found.update(action="Scheduling" if type == "Warning" else "Binding", reportingComponent=component)
        found["reportingInstance"] = f"{component}-{socket.gethostname()}"
        return found
    source = {"component": component, "host": host} if host else {"component": component}
    found.update(source=source, firstTimestamp=format_time(now), lastTimestamp=format_time(now), count=1)
    found.update(eventTime=None, reportingComponent=component, reportingInstance=host)
    return found


class Recorder:
    """Writes Events of one component; the same Event again raises the count of the first."""

    def __init__(self, store: Store, component: str, now: Callable[[], datetime.datetime], host: str = "") -> None:
        self._store = store
        self._component = component
        self._host = host
        self._now = now
        self._known: dict[tuple[str, ...], tuple[str, str]] = {}

    def __call__(self, obj: Object, type: str, reason: str, message: str, field_path: str = "") -> None:
        involved = reference(obj, field_path)
        key = (involved["uid"], type, reason, message, field_path)
        if key in self._known and self._count_up(*self._known[key]):
            return
        made = event(
            involved,
            type=type,
            reason=reason,
            message=message,
            component=self._component,
            host=self._host,
            now=self._now(),
        )
        try:
            stored = self._store.create("events", made)
        except ApiError:  # an Event is a courtesy: in a namespace on its way out it may be refused
            return
        self._known[key] = (stored["metadata"]["namespace"], name_of(stored))
        if len(self._known) > 5000:
            del self._known[next(iter(self._known))]

    def _count_up(self, namespace: str, name: str) -> bool:
        now = self._now()

        def again(found: Object) -> None:
            if found.get("eventTime"):
                found["series"] = {
                    "count": found.get("series", {}).get("count", 1) + 1,
                    "lastObservedTime": format_micro_time(now),
                }
            else:
                found.update(count=found.get("count", 1) + 1, lastTimestamp=format_time(now))

        try:
            self._store.modify("events", namespace, name, again)
        except NotFound:
            return False
        return True
