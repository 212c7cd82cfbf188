"""What to tell a user when a status has become another: few lines, and none when nothing changed that matters to people.

Numbers that count up and down in a message (nodes, quota) are no news; a reason that changes is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .describe import MARGIN, who
from .model import Category, Phase, RankStatus, Waiting, WorkloadStatus
from .stalled import HINT
from .waiting import is_running

# Gangs up to this size tell of every rank that starts, larger ones of each quarter.
_SMALL_GANG = 8


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing worth a line. `kind` is phase, waiting, ranks, restart, replaced, stalled or failure; `details` are more lines."""

    kind: str
    text: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


def transitions(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    """The changes, the most important first; empty when there is nothing to tell."""
    changes = _restart(previous, current) + _phase(previous, current)
    if not current.is_terminal:
        changes += _replaced(previous, current) + _waiting(previous, current) + _ranks(previous, current)
        changes += _stalled(previous, current)
    return changes


def _stalled(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    before, now = previous.stalled if previous else None, current.stalled
    if now is not None and (before is None or before.summary != now.summary):
        return [Change(kind="stalled", text=now.summary, details=(*(MARGIN + line for line in now.lines), HINT))]
    if before is not None and now is None and current.phase is Phase.RUNNING:
        return [
            Change(kind="stalled", text="The task makes progress again." if current.size == 1 else "Ranks make progress again.")
        ]
    return []


def _restart(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    if previous is None or current.restarts <= previous.restarts:
        return []
    culprit = next((rank for rank in previous.ranks if rank.phase == "Failed" and not rank.is_collateral), None)
    why = f", after the end of {_inside(who(culprit, previous.size))}{_end_text(culprit)}" if culprit else ""
    return [Change(kind="restart", text=f"Starts again (restart {current.restarts}){why}.")]


def _phase(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    if previous is not None and previous.phase is current.phase:
        return []
    if current.failure and current.is_terminal:
        return [Change(kind="failure", text=current.failure.summary)]
    return [Change(kind="phase", text=_phase_text(current))]


def _phase_text(current: WorkloadStatus) -> str:
    everyone = "The task" if current.size == 1 else f"All {current.size} ranks"
    run, succeeded = ("runs", "has succeeded") if current.size == 1 else ("run", "have succeeded")
    return {
        Phase.PENDING: "Submitted.",
        Phase.QUEUED: "Queued.",
        Phase.STARTING: "Starting." if current.size == 1 else f"Starting: {_running(current)} of {current.size} ranks run.",
        Phase.RUNNING: f"{everyone} {run}.",
        Phase.SUCCEEDED: f"{everyone} {succeeded}.",
        Phase.FAILED: "Failed.",
        Phase.GONE: "Deleted by someone else.",
    }[current.phase]


def _waiting(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    waiting = current.waiting
    if waiting is None or waiting.is_ordinary or (previous and _sense(previous.waiting) == _sense(waiting)):
        return []
    return [Change(kind="waiting", text=waiting.summary)]


def _sense(waiting: Waiting | None) -> tuple[Category, str] | None:
    return (waiting.category, re.sub(r"\d+", "#", waiting.summary)) if waiting else None


def _ranks(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    """Progress while starting; the phases tell the beginning and the end of it, and of ranks that are lost again."""
    if previous is None or not previous.phase is current.phase is Phase.STARTING or current.restarts != previous.restarts:
        return []
    before, now = _running(previous), _running(current)
    if _step(before, current.size) >= _step(now, current.size):
        return []
    return [Change(kind="ranks", text=f"{now} of {current.size} ranks run.")]


def _step(running: int, size: int) -> int:
    return running if size <= _SMALL_GANG else running * 4 // size


def _running(status: WorkloadStatus) -> int:
    return sum(1 for rank in status.ranks if is_running(rank))


def _replaced(previous: WorkloadStatus | None, current: WorkloadStatus) -> list[Change]:
    """A rank whose pod ended and that got another one within the same attempt."""
    if previous is None or previous.restarts != current.restarts or Phase.QUEUED in (previous.phase, current.phase):
        return []
    before = {rank.rank: rank for rank in previous.ranks}
    return [
        Change(kind="replaced", text=_replaced_text(old, rank, current.size))
        for rank in current.ranks
        if (old := before.get(rank.rank)) and old.pod_uid and rank.pod_uid and old.pod_uid != rank.pod_uid
    ]


def _replaced_text(old: RankStatus, new: RankStatus, size: int) -> str:
    return f"{who(new, size)} takes the place of pod {old.pod}{_end_text(old)}."


def _end_text(rank: RankStatus) -> str:
    """ ": Evicted", ": Error, exit code 3"."""
    facts = [rank.reason] if rank.reason else []
    if rank.exit_code is not None:
        facts.append(f"exit code {rank.exit_code}")
    return f": {', '.join(facts)}" if facts and rank.phase in ("Failed", "Deleted") else ""


def _inside(subject: str) -> str:
    """Within a sentence: "worker 1 (rank 2, ...)"."""
    return subject[:1].lower() + subject[1:]
