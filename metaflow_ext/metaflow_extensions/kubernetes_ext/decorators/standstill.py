"""Whether a rank gets on, decided from samples of what can be seen of any process without its help. Pure.

A process that computes in one place for long (a fit in C) and one that spins in a collective look alike: that is for whoever
sees all ranks (status.stalled). So standing still here means: in the places of before, silent, and either idle or at one place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

IDLE_SHARE = 0.02  # of a core, at most, of this process
OTHERS_SHARE = 0.05  # of a core, at least, of the processes that it may be waiting for


class Sample(NamedTuple):
    """`places` are the main thread's stacks since the sample before; `progress` counts `current.gang.progress()`. Seconds."""

    at: float
    places: frozenset[Any]
    output: int  # bytes written so far
    progress: int
    own_cpu: float
    others_cpu: float


class Standstill:
    """Since when a rank has not got on. `first` is its first sample."""

    def __init__(self, first: Sample) -> None:
        self._start, self._last = first, first
        self._known = first.places

    @property
    def since(self) -> float:
        return self._start.at

    @property
    def busy(self) -> float:
        """The share of a core that this process has used since then."""
        return _share(self._last.own_cpu - self._start.own_cpu, self._last.at - self._start.at)

    def see(self, sample: Sample) -> None:
        """Samples that come late change nothing: what matters is how they differ."""
        if self._has_moved(sample):
            self._start, self._known = sample, sample.places
        else:
            self._known = self._known | sample.places
        self._last = sample

    def _has_moved(self, now: Sample) -> bool:
        before, seconds = self._last, now.at - self._last.at
        if now.progress or before.progress:  # whoever says how far it is, is taken at its word
            return now.progress != before.progress
        if now.output != before.output or _share(now.others_cpu - before.others_cpu, seconds) > OTHERS_SHARE:
            return True
        if _share(now.own_cpu - before.own_cpu, seconds) > IDLE_SHARE:
            return len(now.places | before.places) > 1
        return not now.places <= self._known  # it may go round, idle: `while not ready: sleep(1)`


def _share(cpu: float, seconds: float) -> float:
    return max(0.0, cpu) / seconds if seconds > 0 else 0.0
