"""Waits that end: for something to become true, for the next item of a stream."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from metaflow_extensions.kubernetes_ext.cluster.protocol import Stream, WatchEvent

T = TypeVar("T")
PATIENCE = float(
    os.environ.get("METAFLOW_KUBERNETES_EXT_PATIENCE", "60")
)  # seconds, for a busy machine; nothing waits so long where all is well
_PAUSE = 0.03


def until(condition: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """The first result of `condition` that is true."""
    give_up_at = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < give_up_at, f"not within {seconds:g} s: {what}"
        time.sleep(_PAUSE)
    return result


class Reader:
    """Reads a stream in a thread of its own, so that a test can wait for each item with a deadline.

    with Reader(client.watch(...)) as reader:
        assert reader.next().type == "SYNCED"
    """

    def __init__(self, stream: Stream[Any]) -> None:
        self.stream = stream
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Reader:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stream.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "close() does not end the stream"

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def next(self, seconds: float = PATIENCE) -> Any:
        """The next item; what the stream raised, if it did; StopIteration's place is taken by None."""
        try:
            item = self._items.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"nothing came within {seconds:g} s") from None
        if isinstance(item, Exception):
            raise item
        return item

    def rest(self) -> list[Any]:
        """All items up to the stream's end."""
        found = []
        while (item := self.next()) is not None:
            found.append(item)
        return found

    def event(self) -> tuple[str, str]:
        """The next watch event as (type, name); SYNCED with the sorted names in its list, comma-separated."""
        event: WatchEvent = self.next()
        if event.type == "SYNCED":
            return event.type, ",".join(sorted(item["metadata"]["name"] for item in event.object["items"]))
        return event.type, event.object["metadata"]["name"]

    def _read(self) -> None:
        try:
            for item in self.stream:
                self._items.put(item)
            self._items.put(None)
        except Exception as error:  # noqa: BLE001  (raised again in the test's thread)
            self._items.put(error)
