"""Keeps a watch going for as long as it takes: list, watch, resume, list again.

It knows nothing of HTTP: a `Source` lists and opens streams. Nothing is missed: a stream is resumed at the last resource
version it told, and where the server has forgotten that version (410) the list is read again and marked SYNCED.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, Protocol

from ..errors import ClusterError, Forbidden, NotFound
from .protocol import WatchEvent
from .retry import Backoff, Trouble, is_transient, pause

_CHANGES = ("ADDED", "MODIFIED", "DELETED")
_LIVED_SECONDS = 5.0  # a stream that lasted this long was a good one, also without events


class Source(Protocol):
    """One kind of object in one place. Both raise ClusterError."""

    def list(self) -> dict[str, Any]: ...

    def stream(self, resource_version: str) -> Generator[dict[str, Any], None, None]:
        """Opens at once, then yields watch events ({"type", "object"}) until the server ends it. ERROR events are raised."""


def is_final(error: ClusterError, has_listed: bool) -> bool:
    """Whether a watch must give up. What has worked before goes on through anything but a lost permission or kind: expired
    log-ins and untrusted certificates of captive networks pass."""
    if has_listed:
        return isinstance(error, NotFound) or (isinstance(error, Forbidden) and error.status == 403)
    return not is_transient(error)


def events(
    source: Source,
    *,
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
    backoff: Backoff,
    on_trouble: Trouble | None = None,
) -> Generator[WatchEvent, None, None]:
    """All changes, for ever; raises what `is_final`. `on_trouble` hears of each failure to list or to open a stream, and
    None when that works again; a stream that merely breaks and opens again is no trouble."""
    version = ""
    has_listed = in_trouble = False
    delays = backoff.delays()
    while True:
        opened_at = None
        error: ClusterError | None = None
        try:
            if not version:
                listed = source.list()
                version = str((listed.get("metadata") or {}).get("resourceVersion") or "")
                has_listed = True
                yield WatchEvent("SYNCED", {"items": listed.get("items") or []})
            stream = source.stream(version)
            opened_at = monotonic()
            if in_trouble and on_trouble:
                on_trouble(None)
            in_trouble = False
            with contextlib.closing(stream):  # not left to the collector: tracebacks can keep it alive
                for change in stream:
                    kind, item = str(change.get("type")), change.get("object") or {}
                    version = str((item.get("metadata") or {}).get("resourceVersion") or version)
                    delays = backoff.delays()
                    if kind in _CHANGES:
                        yield WatchEvent(kind, item)
        except ClusterError as caught:
            error = caught
        if error is not None and error.status == 410:
            version = ""
        elif error is not None and is_final(error, has_listed):
            raise error
        elif error is not None and opened_at is None:
            in_trouble = True
            if on_trouble:
                on_trouble(error)
        if opened_at is not None and monotonic() - opened_at >= _LIVED_SECONDS:
            delays = backoff.delays()
            if error is None:
                continue  # the server's time limit
        sleep(next(delays) if error is None else pause(next(delays), error))
