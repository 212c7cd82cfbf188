"""A cluster, a clock and a reporter for tests: they implement the protocols, and nothing is patched.

clock = FakeClock()
cluster = FakeCluster()
clock.at(30, lambda: cluster.update(PODS, pod))     # happens when the code under test has waited for 30 s
"""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from metaflow_extensions.kubernetes_ext.cluster.protocol import LogEnd, LogLine, Resource, WatchEvent
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Conflict, NotFound

START = datetime(2026, 1, 1, 12, 0, 0, tzinfo=timezone.utc)


class FakeClock:
    """Time that passes when it is slept. Only the thread that made the clock moves it; others wait until it has moved."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._passed = 0.0
        self._owner = threading.get_ident()
        self._moved = threading.Condition()
        self._plans: list[tuple[float, Callable[[], object]]] = []
        self.slept: list[float] = []  # by `sleep`, not by `wait`

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do `action` when so many seconds have passed since the start."""
        self._plans.append((seconds, action))
        self._plans.sort(key=lambda plan: plan[0])

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        return self._passed

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.wait(threading.Event(), seconds)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if threading.get_ident() != self._owner:
            return self._wait_for_owner(event, self._passed + seconds)
        target = self._passed + seconds
        if event.wait(0.0005):
            return True
        while self._plans and self._plans[0][0] <= target:
            due, action = self._plans.pop(0)
            self._move(max(due, self._passed))
            action()
            if event.wait(0.4):  # threads pass on what the action has changed
                return True
        self._move(target)
        return event.is_set()

    def _wait_for_owner(self, event: threading.Event, target: float) -> bool:
        while self._passed < target and not event.is_set():
            with self._moved:
                self._moved.wait(0.01)
        return event.is_set()

    def _move(self, to: float) -> None:
        with self._moved:
            self._passed = to
            self._moved.notify_all()


class RecordingReporter:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.logs: list[tuple[str, int, str]] = []  # role, rank, line

    def line(self, text: str) -> None:
        self.lines.append(text)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        self.logs.append((role, rank, line))


class FakeStream:
    """A stream fed by the test; `close` ends it from any thread."""

    _END = object()

    def __init__(self, on_close: Callable[[FakeStream], None] = lambda stream: None) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._on_close = on_close
        self._is_over = False

    def put(self, item: Any) -> None:
        """An item, or an exception to raise in its place."""
        self._items.put(item)

    def end(self) -> None:
        self._items.put(self._END)

    def __iter__(self) -> FakeStream:
        return self

    def __next__(self) -> Any:
        item = self._END if self._is_over else self._items.get()
        if item is self._END:
            self._is_over = True
            raise StopIteration
        if isinstance(item, Exception):
            self._is_over = True
            raise item
        return item

    def close(self) -> None:
        self._on_close(self)
        self.end()


class _Watcher(FakeStream):
    """A watch: what it selects, and the test's way to make its client report trouble."""

    def __init__(
        self,
        resource: Resource,
        matches: Callable[[Mapping[str, Any]], bool],
        on_trouble: Callable[[ClusterError | None], None] | None,
        on_close: Callable[[FakeStream], None],
    ) -> None:
        super().__init__(on_close)
        self.resource = resource
        self.matches = matches
        self.on_trouble = on_trouble


class _Tails(FakeStream):
    """Followed logs: a log is over when its pod's log has ended and its reader knows of it."""

    def __init__(self, cluster: FakeCluster, on_close: Callable[[FakeStream], None]) -> None:
        super().__init__(on_close)
        self._cluster = cluster
        self.pods: dict[str, str] = {}  # by key
        self.finished: set[str] = set()

    def add(self, key: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None) -> None:
        with self._cluster._lock:
            try:
                pieces = list(self._cluster.logs("", pod, since=since, tail=tail))
            except ClusterError as error:
                self.put(LogEnd(key, error))
                return
            for piece in pieces:
                self.put(piece._replace(key=key))
            self.pods[key] = pod

    def finish(self, key: str) -> None:
        with self._cluster._lock:
            self.finished.add(key)
            self.end_if_over(key)

    def end_if_over(self, key: str) -> None:
        if key in self.finished and self.pods.get(key) in self._cluster.ended_logs:
            del self.pods[key]
            self.put(LogEnd(key))


class FakeCluster:
    """Implements `ClusterClient` in memory. Objects of all kinds in one dictionary; nothing happens by itself.

    `requests` counts (verb, plural). `fail` makes the next requests of a verb raise.
    """

    def __init__(self, served: tuple[Resource, ...] = ()) -> None:
        self.requests: Counter[tuple[str, str]] = Counter()
        self.served = served
        self._lock = threading.RLock()
        self._objects: dict[tuple[str, str, str, str], dict[str, Any]] = {}  # group, plural, namespace, name
        self._version = 100
        self._failures: dict[tuple[str, str], list[Exception]] = {}
        self._watchers: list[_Watcher] = []
        self._logs: dict[str, list[tuple[str, str]]] = {}
        self._tails: list[_Tails] = []
        self.ended_logs: set[str] = set()  # pods

    # ---- what tests do to it

    def fail(self, verb: str, plural: str, *errors: Exception) -> None:
        """The next requests raise these, one each."""
        self._failures.setdefault((verb, plural), []).extend(errors)

    def update(self, resource: Resource, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Add or replace an object, as a controller would; watches see it."""
        with self._lock:
            key = self._key(resource, obj)
            known = self._objects.get(key)
            return self._store(resource, key, obj, "MODIFIED" if known else "ADDED", known)

    def remove(self, resource: Resource, name: str, namespace: str = "default") -> None:
        """The object is gone; watches see it."""
        with self._lock:
            gone = self._objects.pop((resource.group, resource.plural, namespace, name), None)
            if gone is not None:
                self._version += 1
                metadata = {**gone["metadata"], "resourceVersion": str(self._version)}
                self._publish(resource, WatchEvent("DELETED", {**gone, "metadata": metadata}), gone)

    def forget(self, resource: Resource, name: str, namespace: str = "default") -> None:
        """The object is gone, and no watch has seen it (until `relist`)."""
        with self._lock:
            self._objects.pop((resource.group, resource.plural, namespace, name), None)

    def relist(self) -> None:
        """All watches list again, as after a 410."""
        with self._lock:
            for watcher in self._watchers:
                self.requests["list", watcher.resource.plural] += 1
                watcher.put(self._synced(watcher))

    def trouble(self, error: ClusterError | None) -> None:
        """All watches find the server away, or back again (None)."""
        for watcher in list(self._watchers):
            if watcher.on_trouble:
                watcher.on_trouble(error)

    def break_watch(self, resource: Resource, error: Exception) -> None:
        """The watches of a resource end with an error."""
        for watcher in list(self._watchers):
            if watcher.resource == resource:
                watcher.put(error)

    def write(self, pod: str, *lines: str, at: str = "2026-01-01T12:00:00Z") -> None:
        """Log lines of a pod."""
        with self._lock:
            for line in lines:
                self._logs.setdefault(pod, []).append((at, line))
                for tails, key in self._followed(pod):
                    tails.put(LogLine(key, at, line))

    def end_log(self, pod: str) -> None:
        """The container has ended: its log is over after what there is."""
        with self._lock:
            self.ended_logs.add(pod)
            for tails, key in self._followed(pod):
                tails.end_if_over(key)

    def wait_for_watches(self, count: int, seconds: float = 5.0) -> None:
        """Until so many watches are open."""
        give_up_at = time.monotonic() + seconds
        while len(self._watchers) < count and time.monotonic() < give_up_at:
            time.sleep(0.001)
        assert len(self._watchers) >= count

    def names(self, resource: Resource) -> list[str]:
        return sorted(key[3] for key in self._objects if key[:2] == (resource.group, resource.plural))

    # ---- ClusterClient

    def create(
        self, resource: Resource, namespace: str, body: Mapping[str, Any], *, dry_run: bool = False, strict: bool = False
    ) -> dict[str, Any]:
        self._request("create", resource)
        with self._lock:
            key = (resource.group, resource.plural, namespace, str(body["metadata"]["name"]))
            if key in self._objects:
                raise Conflict(f'{resource.plural} "{key[3]}" already exists', status=409, reason="AlreadyExists")
            if dry_run:
                return copy.deepcopy(dict(body))
            return self._store(resource, key, body, "ADDED", None)

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        self._request("get", resource)
        with self._lock:
            found = self._objects.get((resource.group, resource.plural, namespace, name))
            if found is None:
                raise NotFound(f'{resource.plural} "{name}" not found', status=404, reason="NotFound")
            return copy.deepcopy(found)

    def list(self, resource: Resource, namespace: str, *, label_selector: str = "", field_selector: str = "") -> dict[str, Any]:
        self._request("list", resource)
        matches = _matcher(label_selector, field_selector)
        with self._lock:
            return {"metadata": {"resourceVersion": str(self._version)}, "items": self._found(resource, matches)}

    def delete(self, resource: Resource, namespace: str, name: str, *, propagation: str = "Background", uid: str = "") -> None:
        self._request("delete", resource)
        with self._lock:
            found = self._objects.get((resource.group, resource.plural, namespace, name))
            if found is not None and uid in ("", found["metadata"]["uid"]):
                self.remove(resource, name, namespace)

    def patch(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self._request("patch", resource)
        with self._lock:
            found = self._objects.get((resource.group, resource.plural, namespace, name))
            if found is None:
                raise NotFound(f'{resource.plural} "{name}" not found', status=404, reason="NotFound")
            return self.update(resource, _merged(found, body))

    def watch(
        self,
        resource: Resource,
        namespace: str,
        *,
        label_selector: str = "",
        field_selector: str = "",
        on_trouble: Callable[[ClusterError | None], None] | None = None,
    ) -> FakeStream:
        self._request("list", resource)
        with self._lock:
            watcher = _Watcher(resource, _matcher(label_selector, field_selector), on_trouble, self._unwatch)
            watcher.put(self._synced(watcher))
            try:
                self._request("watch", resource)
            except ClusterError as error:  # it comes after what was listed
                watcher.put(error)
                return watcher
            self._watchers.append(watcher)
            return watcher

    def logs(self, namespace: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None) -> FakeStream:
        self._request("get", Resource("", "v1", "pods/log", "log"))
        with self._lock:
            lines = self._logs.get(pod)
            if lines is None:
                raise NotFound(f'pods "{pod}" not found', status=404, reason="NotFound")
            stream = FakeStream()
            for at, text in lines if tail is None else lines[-tail:]:
                if not since or at > since:
                    stream.put(LogLine(pod, at, text))
            stream.end()
            return stream

    def tails(self, namespace: str) -> _Tails:
        with self._lock:
            self._tails.append(_Tails(self, self._untail))
            return self._tails[-1]

    def serves(self, resource: Resource) -> bool:
        self._request("get", Resource(resource.group, resource.version, "", "API group"))
        return resource in self.served

    def close(self) -> None:
        with self._lock:
            streams: list[FakeStream] = [*self._watchers, *self._tails]
        for stream in streams:
            stream.close()

    # ---- how

    def _followed(self, pod: str) -> list[tuple[_Tails, str]]:
        return [(tails, key) for tails in self._tails for key, one in tails.pods.items() if one == pod]

    def _request(self, verb: str, resource: Resource) -> None:
        with self._lock:
            self.requests[verb, resource.plural] += 1
            failures = self._failures.get((verb, resource.plural))
            if failures:
                raise failures.pop(0)

    def _key(self, resource: Resource, obj: Mapping[str, Any]) -> tuple[str, str, str, str]:
        metadata = obj["metadata"]
        return (resource.group, resource.plural, metadata.get("namespace", "default"), metadata["name"])

    def _store(
        self,
        resource: Resource,
        key: tuple[str, str, str, str],
        obj: Mapping[str, Any],
        event: str,
        known: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        self._version += 1
        stored = {"apiVersion": resource.api_version, "kind": resource.kind, **copy.deepcopy(dict(obj))}
        uid = (known or {}).get("metadata", {}).get("uid") or stored["metadata"].get("uid") or f"uid-{key[3]}-{self._version}"
        stored["metadata"].update(namespace=key[2], uid=uid, resourceVersion=str(self._version))
        stored["metadata"].setdefault("creationTimestamp", "2026-01-01T12:00:00Z")
        self._objects[key] = stored
        self._publish(resource, WatchEvent(event, copy.deepcopy(stored)), known)
        return copy.deepcopy(stored)

    def _found(self, resource: Resource, matches: Callable[[Mapping[str, Any]], bool]) -> list[dict[str, Any]]:
        place = (resource.group, resource.plural)
        return [copy.deepcopy(obj) for key, obj in self._objects.items() if key[:2] == place and matches(obj)]

    def _synced(self, watcher: _Watcher) -> WatchEvent:
        return WatchEvent("SYNCED", {"items": self._found(watcher.resource, watcher.matches)})

    def _publish(self, resource: Resource, event: WatchEvent, before: Mapping[str, Any] | None) -> None:
        """To a selector, entering is an addition and leaving a deletion, with the object as it was before."""
        for watcher in self._watchers:
            if watcher.resource != resource:
                continue
            was, is_in = before is not None and watcher.matches(before), watcher.matches(event.object)
            if event.type == "DELETED" or (was and is_in):
                if was:
                    watcher.put(event)
            elif is_in:
                watcher.put(WatchEvent("ADDED", event.object))
            elif was and before is not None:
                metadata = {**before["metadata"], "resourceVersion": event.object["metadata"]["resourceVersion"]}
                watcher.put(WatchEvent("DELETED", {**before, "metadata": metadata}))

    def _untail(self, stream: FakeStream) -> None:
        with self._lock:
            self._tails = [tails for tails in self._tails if tails is not stream]

    def _unwatch(self, stream: FakeStream) -> None:
        with self._lock:
            self._watchers = [watcher for watcher in self._watchers if watcher is not stream]


def _matcher(label_selector: str, field_selector: str) -> Callable[[Mapping[str, Any]], bool]:
    """Equality selectors on labels and on any field by its dotted path."""
    labels = dict(part.split("=", 1) for part in label_selector.split(",") if part)
    fields = dict(part.split("=", 1) for part in field_selector.split(",") if part)

    def matches(obj: Mapping[str, Any]) -> bool:
        found = obj["metadata"].get("labels") or {}
        return all(found.get(key) == value for key, value in labels.items()) and all(
            _field(obj, path) == value for path, value in fields.items()
        )

    return matches


def _field(obj: Mapping[str, Any], path: str) -> Any:
    value: Any = obj
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return value


def _merged(old: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """JSON merge patch (RFC 7386)."""
    result = dict(old)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            result[key] = _merged(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


def take(items: Iterator[Any], count: int) -> list[Any]:
    """The next `count` items of a stream that does not end."""
    return [next(items) for _ in range(count)]
