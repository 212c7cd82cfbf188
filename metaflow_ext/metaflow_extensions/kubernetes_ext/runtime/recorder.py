"""Writes what watches see of a workload in the format of status/trace.py: for bug reports that can be replayed without a cluster.

What could be secret is taken out: values of environment variables, commands, and annotations that repeat the whole object.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from ..backends.base import Backend
from ..cluster.protocol import EVENTS, JOBS, PODS, ClusterClient, WatchEvent
from ..errors import ClusterError
from ..spec import labels
from ..status.model import Phase
from ..status.reading import created_at, dig
from .clock import Clock
from .closer_look import is_queued_by_kueue, kueue_resource
from .feeds import Feeds, Selection
from .picture import PODS as POD_SOURCE
from .picture import WORKLOAD, Picture, uid_of
from .resources import resource_of

REMOVED = "<removed>"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_ADMISSION = "admission"  # Kueue's Workload; where it may not be watched it is listed now and then
_EVENTS_SECONDS = 10.0
_AFTER_THE_END = 5.0  # seconds in which the last changes still come


def redacted(value: Any) -> Any:
    """The object without what could be secret, at any depth: a JobSet holds pod templates."""
    if isinstance(value, Mapping):
        return {key: _redacted_field(key, item) for key, item in value.items() if key not in ("managedFields", _LAST_APPLIED)}
    if isinstance(value, list):
        return [redacted(item) for item in value]
    return value


def _redacted_field(key: str, item: Any) -> Any:
    if key in ("command", "args") and isinstance(item, list):
        return [REMOVED]
    if key == "env" and isinstance(item, list):
        return [{**one, "value": REMOVED} if isinstance(one, Mapping) and "value" in one else redacted(one) for one in item]
    return redacted(item)


class Recorder:
    """`write` gets one line of JSON at a time."""

    def __init__(
        self,
        client: ClusterClient,
        backend: Backend,
        workload: Mapping[str, Any],
        *,
        clock: Clock,
        write: Callable[[str], None],
    ) -> None:
        metadata = workload["metadata"]
        self._client = client
        self._backend = backend
        self._namespace = str(metadata["namespace"])
        self._clock = clock
        self._write = write
        self._start: datetime = created_at(workload) or clock.now()
        self._picture = Picture(workload)
        self._versions: dict[str, tuple[str, Mapping[str, Any]]] = {}  # by uid: the last version, and the object
        name = str(metadata["name"])
        selections = [Selection(source=WORKLOAD, resource=resource_of(backend), field_selector=f"metadata.name={name}")]
        selections.append(Selection(source=POD_SOURCE, resource=PODS, label_selector=backend.pod_selector(name)))
        if jobs := backend.job_selector(name):
            selections.append(Selection(source="jobs", resource=JOBS, label_selector=jobs))
        if is_queued_by_kueue(workload) and (kueue := kueue_resource(client)):
            of_job = f"{labels.KUEUE_JOB_UID}={uid_of(workload)}"
            selections.append(Selection(source=_ADMISSION, resource=kueue, label_selector=of_job))
        self._kinds = {selection.source: selection.resource for selection in selections}
        self._feeds = Feeds(client, self._namespace, tuple(selections), clock)

    def record(self) -> Phase:
        """Until the workload has ended, and a few seconds beyond. Its last phase."""
        previous, ends_at, events_at = None, None, 0.0
        self._feeds.start()
        try:
            while ends_at is None or self._clock.monotonic() < ends_at:
                self._clock.wait(self._feeds.inbox.filled, 1.0)
                for source, message in self._feeds.inbox.drain():
                    if isinstance(message, WatchEvent):
                        self._hear(source, message)
                if self._clock.monotonic() >= events_at:
                    events_at = self._clock.monotonic() + _EVENTS_SECONDS
                    self._read_events()
                previous = self._backend.reduce(self._picture.observation(self._clock.now()), previous)
                if ends_at is None and (previous.is_terminal or self._picture.is_missing):
                    ends_at = self._clock.monotonic() + _AFTER_THE_END
            self._read_events()
            return previous.phase if previous else Phase.PENDING
        finally:
            self._feeds.close()

    def _hear(self, source: str, event: WatchEvent) -> None:
        if source != _ADMISSION:
            self._picture.apply(source, event, self._clock.now())
        if event.type != "SYNCED":
            self._line(event.type, event.object)
            return
        items = event.object.get("items") or []
        for item in items:
            self._line("ADDED", item)
        present = {uid_of(item) for item in items}
        kind = self._kinds[source].kind
        for uid, (_, known) in list(self._versions.items()):
            if known.get("kind") == kind and uid not in present:
                self._line("DELETED", known)

    def _line(self, kind: str, obj: Mapping[str, Any]) -> None:
        uid, version = uid_of(obj), str(dig(obj, "metadata", "resourceVersion"))
        known = self._versions.get(uid)
        if kind == "DELETED":
            self._versions.pop(uid, None)
        elif known and known[0] == version:
            return  # listed again
        else:
            self._versions[uid] = (version, obj)
            kind = "MODIFIED" if known else "ADDED"
        t = round((self._clock.now() - self._start).total_seconds(), 3)
        self._write(json.dumps({"t": t, "type": kind, "object": redacted(obj)}))

    def _read_events(self) -> None:
        """They are not watched. Without them, the recording is still one."""
        with suppress(ClusterError):
            for uid in self._about():
                listed = self._client.list(EVENTS, self._namespace, field_selector=f"involvedObject.uid={uid}")
                for item in listed.get("items") or ():
                    self._line("ADDED", item)

    def _about(self) -> Iterator[str]:
        for uid, (_, obj) in list(self._versions.items()):
            if obj.get("kind") in ("JobSet", "Job"):
                yield uid
