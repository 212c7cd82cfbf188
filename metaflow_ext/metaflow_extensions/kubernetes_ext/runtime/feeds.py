"""One thread per watch, all feeding one inbox. Where watching is not permitted, listing now and then."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from ..cluster.protocol import ClusterClient, Resource, Stream, WatchEvent
from ..errors import ClusterError, Forbidden
from .clock import Clock

POLL_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a feed watches. `source` names it in the inbox."""

    source: str
    resource: Resource
    label_selector: str = ""
    field_selector: str = ""


@dataclass(frozen=True)
class Trouble:
    """The server can't be reached, or (None) can again."""

    error: ClusterError | None


@dataclass(frozen=True)
class Degraded:
    """The permission to watch is missing; `error` says which. The feed goes on by listing."""

    error: ClusterError


@dataclass(frozen=True)
class Refused:
    """The permission to list is missing, by the first answer; the feed asks once more, and then ends."""

    error: ClusterError


@dataclass(frozen=True)
class Ended:
    """The feed is over: by an error, or (None) because it was closed."""

    error: Exception | None


Message = WatchEvent | Trouble | Degraded | Refused | Ended


class Inbox:
    """Messages of all feeds with their sources, in the order they came."""

    def __init__(self) -> None:
        self.filled = threading.Event()
        self._messages: deque[tuple[str, Message]] = deque()

    def put(self, source: str, message: Message) -> None:
        self._messages.append((source, message))
        self.filled.set()

    def drain(self) -> list[tuple[str, Message]]:
        self.filled.clear()
        drained = []
        while self._messages:
            drained.append(self._messages.popleft())
        return drained


class Feeds:
    """Watches the selections from `start` to `close`."""

    def __init__(self, client: ClusterClient, namespace: str, selections: tuple[Selection, ...], clock: Clock) -> None:
        self.inbox = Inbox()
        self._client = client
        self._namespace = namespace
        self._selections = selections
        self._clock = clock
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._streams: list[Stream[WatchEvent]] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for selection in self._selections:
            name = f"watch-{selection.resource.plural}"
            thread = threading.Thread(target=self._run, args=(selection,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self, wait: float = 2.0) -> None:
        """Ends all feeds; their threads are given `wait` seconds."""
        self._closed.set()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.close()
        for thread in self._threads:
            thread.join(wait)

    def _run(self, selection: Selection) -> None:
        put: Callable[[Message], None] = lambda message: self.inbox.put(selection.source, message)  # noqa: E731
        error: Exception | None = RuntimeError(f"The watch of {selection.resource.plural} died.")
        try:
            self._watch_or_list(selection, put)
            error = None
        except ClusterError as caught:
            error = caught
        finally:
            put(Ended(error))  # also after a bug, whose traceback the thread prints: nobody waits for a dead feed

    def _watch_or_list(self, selection: Selection, put: Callable[[Message], None]) -> None:
        """Until closed. A watch begins with a list, so where watching is refused, trying it again is listing now and then; and
        a refusal that was a moment's (an authorizer that is down, a log-in that expired) is over when it is.

        Raises ClusterError where nothing has ever been listed, and is refused a second time.
        """
        has_listed = is_told = was_refused = False

        def heard(message: Message) -> None:
            nonlocal has_listed
            has_listed = has_listed or isinstance(message, WatchEvent)
            put(message)

        while not self._closed.is_set():
            listed_before, has_listed = has_listed, False
            try:
                self._watch(selection, heard)
                return
            except Forbidden as refused:
                if has_listed:  # in this try, so it is watching that is refused
                    if not is_told:
                        put(Degraded(refused))
                    is_told = True
                    put(Trouble(None))
                elif listed_before or refused.status == 401:
                    put(Trouble(refused))
                elif was_refused:
                    raise
                else:
                    was_refused = True
                    put(Refused(refused))
                has_listed = has_listed or listed_before
            self._clock.wait(self._closed, POLL_SECONDS)

    def _watch(self, selection: Selection, put: Callable[[Message], None]) -> None:
        stream = self._client.watch(
            selection.resource,
            self._namespace,
            label_selector=selection.label_selector,
            field_selector=selection.field_selector,
            on_trouble=lambda error: put(Trouble(error)),
        )
        with self._lock:
            self._streams.append(stream)
        if self._closed.is_set():
            stream.close()
        for event in stream:
            put(event)
