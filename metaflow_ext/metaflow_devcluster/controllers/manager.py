"""The loop that runs all controllers: changes of the store become keys, keys are reconciled when they are due.

One loop and one thread: a reconcile is never interrupted, and a key is queued at most once, at its earliest time.
"""

from __future__ import annotations

import asyncio
import datetime
import heapq
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ..errors import ApiError, Conflict, Expired
from ..store import Change, Store, Subscription

log = logging.getLogger(__name__)
Key = tuple[str, ...]
MAX_BACKOFF = 600.0
_BATCH = 8


def utc_now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


class TryAgain(Exception):
    """A reconcile could not do all of its work and wants to be repeated, later each time."""


class Controller(Protocol):
    """`first_retry` is the first delay after TryAgain, in seconds; it doubles."""

    first_retry: float

    def keys(self, change: Change) -> Iterable[tuple[Key, float]]:
        """What a change concerns, each key with the seconds until it shall be reconciled."""

    def reconcile(self, key: Key) -> float | None:
        """Do what is to be done; seconds until the next look, None when a change will tell."""


class Queue:
    """Keys by the time they are due; each at most once, an earlier time wins."""

    def __init__(self) -> None:
        self._due: dict[tuple[int, Key], float] = {}
        self._heap: list[tuple[float, int, tuple[int, Key]]] = []
        self._serial = itertools.count()

    def add(self, entry: tuple[int, Key], due: float) -> None:
        known = self._due.get(entry)
        if known is None or due < known:
            self._due[entry] = due
            heapq.heappush(self._heap, (due, next(self._serial), entry))

    def take(self, now: float) -> tuple[int, Key] | None:
        """The next key that is due, if any."""
        while self._heap and self._heap[0][0] <= now:
            due, _, entry = heapq.heappop(self._heap)
            if self._due.get(entry) == due:
                del self._due[entry]
                return entry
        return None

    def next_due(self) -> float | None:
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class Manager:
    """Runs controllers until cancelled."""

    def __init__(self, store: Store, controllers: Sequence[Controller], clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._controllers = controllers
        self._clock = clock
        self._queue = Queue()
        self._failures: dict[tuple[int, Key], int] = {}

    async def run(self) -> None:
        """Follow the store; what existed before is seen as added."""
        while True:
            with self._store.subscribe() as changes:
                self._note(self._existing())
                try:
                    await self._follow(changes)
                except Expired:
                    log.warning("the controllers fell behind the store and look at everything again")

    async def _follow(self, changes: Subscription) -> None:
        """Not with wait_for: before Python 3.12 it can lose a cancellation, and the cluster would never stop."""
        coming: asyncio.Task[Change] | None = None
        try:
            while True:
                self._note(changes.pending())
                if await self._work(changes.pending):
                    continue
                coming = coming or asyncio.ensure_future(changes.__anext__())
                await asyncio.wait([coming], timeout=self._seconds_to_wait())
                if coming.done():
                    self._note([coming.result()])
                    coming = None
        finally:
            if coming:
                coming.cancel()

    async def _work(self, pending: Callable[[], list[Change]]) -> bool:
        """Reconcile some keys that are due; whether there were any."""
        for count in range(_BATCH):
            entry = self._queue.take(self._clock())
            if entry is None:
                return count > 0
            self._reconcile(entry)
            self._note(pending())
        await asyncio.sleep(0)
        return True

    def settle(self, limit: int = 10_000) -> int:
        """Work without an event loop until nothing is due: for tests. Needs `watch` first."""
        for count in range(limit):
            self._note(self._changes.pending())
            entry = self._queue.take(self._clock())
            if entry is None:
                return count
            self._reconcile(entry)
        raise RuntimeError(f"the controllers did not settle within {limit} steps")

    def watch(self) -> None:
        """Start to follow the store for `settle`."""
        self._changes = self._store.subscribe()
        self._note(self._existing())

    def _existing(self) -> list[Change]:
        version = self._store.resource_version
        return [
            Change("ADDED", resource.name, obj, None, version)
            for resource in self._store.resources
            for obj in self._store.list(resource.name)
        ]

    def _note(self, changes: Iterable[Change]) -> None:
        now = self._clock()
        for change in changes:
            for number, controller in enumerate(self._controllers):
                for key, after in controller.keys(change):
                    self._queue.add((number, key), now + after)

    def _seconds_to_wait(self) -> float | None:
        due = self._queue.next_due()
        return None if due is None else max(due - self._clock(), 0.0)

    def _reconcile(self, entry: tuple[int, Key]) -> None:
        number, key = entry
        controller = self._controllers[number]
        try:
            after = controller.reconcile(key)
        except Conflict:
            after = 0.005
        except TryAgain:
            after = self._backoff(entry, controller.first_retry)
        except ApiError as error:
            log.warning("%s %s: %s", type(controller).__name__, "/".join(key), error)
            after = self._backoff(entry, 0.1)
        except Exception:  # one broken object must not stop the cluster
            log.exception("%s failed on %s", type(controller).__name__, "/".join(key))
            after = self._backoff(entry, 1.0)
        else:
            self._failures.pop(entry, None)
        if after is not None:
            self._queue.add(entry, self._clock() + after)

    def _backoff(self, entry: tuple[int, Key], first: float) -> float:
        count = self._failures.get(entry, 0)
        self._failures[entry] = count + 1
        return min(first * 2.0 ** min(count, 40), MAX_BACKOFF)
