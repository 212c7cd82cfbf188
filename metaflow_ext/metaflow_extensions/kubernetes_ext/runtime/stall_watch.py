"""Learns whether a workload that runs stands still, from what its ranks leave in the datastore: seldom, and in a thread of its own.

A rank writes only when it has stood still for the limit, so looking at two of them tells, as a rule, that all is well. Only when
one of these stands still all ranks are asked.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from ..cluster.protocol import ClusterClient, LogLine
from ..errors import ClusterError
from ..status.model import Phase, RankStatus, Stalled, WorkloadStatus
from ..status.stacks import FINISHED, MOVING, Frame, RankStack, dumped, rank_stack
from ..status.stalled import stalled
from .clock import Clock

_FIRST_POLL, _LONGEST_POLL = 0.5, 5.0  # seconds between looks for answers
_LEAST_PERIOD, _LONGEST_PERIOD = 2.0, 60.0  # seconds between looks at the first ranks
_LONGEST_PAUSE = 600.0  # between two questions to all, while some stand still and others don't
_LOG_LINES = 500  # of a rank that does not answer
_SENTINELS = 2  # one alone may be the one that can't answer


class Mailbox(Protocol):
    """Where the ranks of one workload leave their records. Both may raise whatever a datastore raises."""

    def ask(self, token: str) -> None:
        """Ask every rank to write its record anew, with `answers` set to the token."""

    def read(self, ranks: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
        """What there is, by rank."""


def collect(
    mailbox: Mailbox,
    ranks: Sequence[RankStatus],
    patience: float,
    clock: Clock,
    in_log: Callable[[RankStatus], tuple[Frame, ...]],
    closed: threading.Event | None = None,
) -> list[RankStack]:
    """How each rank stands now. Those that don't answer within `patience` seconds, or before `closed`, are silent, with the stack
    in their log. Somebody else may ask at the same time: any record that is new is an answer."""
    closed = closed or threading.Event()
    before = own_records(mailbox, ranks)
    mailbox.ask(uuid.uuid4().hex)
    found: dict[int, RankStack] = {}
    give_up_at, delay = clock.monotonic() + patience, _FIRST_POLL
    while len(found) < len(ranks) and clock.monotonic() < give_up_at and not clock.wait(closed, delay):
        delay = min(delay * 1.3, _LONGEST_POLL)
        records = own_records(mailbox, [rank for rank in ranks if rank.rank not in found])
        found |= {number: rank_stack(number, record) for number, record in records.items() if record != before.get(number)}
    return [found.get(rank.rank) or RankStack(rank=rank.rank, stack=in_log(rank)) for rank in ranks]


def own_records(mailbox: Mailbox, ranks: Sequence[RankStatus]) -> dict[int, Mapping[str, Any]]:
    """Without those of pods that were there before in the same attempt."""
    pods = {rank.rank: rank.pod_uid for rank in ranks}
    return {number: record for number, record in mailbox.read([*pods]).items() if record.get("pod_uid") == pods[number]}


def stack_in_log(client: ClusterClient, namespace: str, rank: RankStatus) -> tuple[Frame, ...]:
    """What faulthandler has written when C code kept Python's lock for the limit; () where there is none."""
    try:
        pieces = client.logs(namespace, rank.pod, tail=_LOG_LINES)
        return dumped([piece.text for piece in pieces if isinstance(piece, LogLine)])
    except ClusterError:
        return ()


class StallWatch:
    """`patience` is for answers; `on_change` hears, in this thread, what `stalled` has become. Seconds."""

    def __init__(
        self,
        mailbox: Mailbox,
        limit: float,
        *,
        patience: float,
        clock: Clock,
        in_log: Callable[[RankStatus], tuple[Frame, ...]] = lambda rank: (),
        on_change: Callable[[Stalled | None], None] = lambda found: None,
    ) -> None:
        self._mailbox, self._limit, self._patience = mailbox, limit, patience
        self._clock, self._in_log, self._on_change = clock, in_log, on_change
        self._period = min(_LONGEST_PERIOD, max(_LEAST_PERIOD, limit / 4))
        self._pause = self._period
        self._ask_at = 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stall-watch", daemon=True)
        self._stalled: Stalled | None = None
        self._status: WorkloadStatus | None = None

    def start(self) -> None:
        self._thread.start()

    def close(self, wait: float = 1.0) -> None:
        """Waits a moment for what is being read: a reading of S3 that is cut off leaves a temporary folder behind."""
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join(wait)

    def seen(self, status: WorkloadStatus) -> Stalled | None:
        """Takes the workload's status as it is now; what is known of its standing still. No I/O."""
        self._status = status
        return self._stalled if status.phase is Phase.RUNNING else None

    def look(self) -> None:
        status = self._status
        if status is None or status.phase is not Phase.RUNNING:
            return self._set(None)
        running = [rank for rank in status.ranks if rank.phase == "Running"]
        if all(record.get("state") == MOVING for record in own_records(self._mailbox, running[:_SENTINELS]).values()):
            self._pause = self._period
            return self._set(None)
        if self._clock.monotonic() < self._ask_at:
            return None
        stacks = collect(self._mailbox, running, self._patience, self._clock, self._in_log, self._closed)
        if self._closed.is_set():
            return None
        self._ask_at = self._clock.monotonic() + self._pause
        self._pause = min(self._pause * 2, _LONGEST_PAUSE)
        ended = [RankStack(rank=rank.rank, state=FINISHED, since=rank.finished_at) for rank in status.ranks if _has_ended(rank)]
        return self._set(stalled([*stacks, *ended], timedelta(seconds=self._limit), self._clock.now()))

    def _set(self, found: Stalled | None) -> None:
        if (found and found.summary) != (self._stalled and self._stalled.summary):
            self._stalled = found
            self._on_change(found)

    def _run(self) -> None:
        while not self._clock.wait(self._closed, self._period):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - of any datastore: there is another look
                continue


def _has_ended(rank: RankStatus) -> bool:
    return rank.phase == "Succeeded" and rank.finished_at is not None
