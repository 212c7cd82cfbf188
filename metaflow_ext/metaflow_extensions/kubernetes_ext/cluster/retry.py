"""When another try is worth it and how long to wait before: the one place where that is decided.

Pure but for `retrying`, whose sleep and clock are arguments.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..errors import ClusterError, Unavailable

T = TypeVar("T")
Trouble = Callable[[ClusterError | None], None]

_LONGEST_RETRY_AFTER = 300.0  # seconds; a server that asks for more is asked again after this


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later without anybody changing anything."""
    return isinstance(error, Unavailable)


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Seconds between tries: doubling from `first` to `longest`, each cut by up to half at random so that clients that
    failed together don't come back together."""

    first: float = 0.5
    longest: float = 30.0
    draw: Callable[[], float] = random.random  # in [0, 1)

    def delays(self) -> Iterator[float]:
        whole = self.first
        while True:
            yield whole * (1 - self.draw() / 2)
            whole = min(2 * whole, self.longest)


DEFAULT_BACKOFF = Backoff()


def pause(delay: float, error: ClusterError) -> float:
    """`delay`, but no less than the server asked for (Retry-After), with the delay's jitter on top."""
    if error.retry_after is None:
        return delay
    asked = min(error.retry_after, _LONGEST_RETRY_AFTER)
    return max(delay, asked + min(delay, 0.2 * asked))


def retrying(
    call: Callable[[], T],
    *,
    patience: float,
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
    backoff: Backoff = DEFAULT_BACKOFF,
    on_trouble: Trouble | None = None,
) -> T:
    """`call()`, again after transient errors until `patience` seconds have passed; then the last error.

    `on_trouble` hears of every failed try, and None once a later one succeeds.
    """
    give_up_at = monotonic() + patience
    failed = False
    for delay in backoff.delays():
        try:
            result = call()
        except Unavailable as error:
            failed = True
            if on_trouble:
                on_trouble(error)
            wait = pause(delay, error)
            if monotonic() + wait > give_up_at:
                raise
            sleep(wait)
        else:
            if failed and on_trouble:
                on_trouble(None)
            return result
    raise AssertionError("delays never end")
