"""The words a user reads when a workload has failed. Pure: a status in, lines out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..status.describe import MARGIN
from ..status.model import RankStatus, WorkloadStatus

MAX_LINES = 25
MAX_LAST_LINES = 10
MAX_LINES_OF_OTHERS = 3
MAX_RANKS = 8


def lines(status: WorkloadStatus, others: Mapping[int, Sequence[str]] | None = None) -> list[str]:
    """Which rank failed first, where, why, its last lines, what became of the others, what to do.

    `others` are the last lines of further ranks that failed by themselves, shown as far as there is room.
    """
    failure = status.failure
    if failure is None:
        return [f"The workload ended as {status.phase}. {status.message}".rstrip()]
    found = [failure.summary]
    if failure.last_lines:
        found.append("Its last lines:")
        found += [f"{MARGIN}{line}" for line in failure.last_lines[-MAX_LAST_LINES:]]
    if status.size > 1:
        found += ranks(status.ranks, failure.rank)
    for rank, last in sorted((others or {}).items()):
        shown = [f"The last lines of rank {rank}:", *(f"{MARGIN}{line}" for line in last[-MAX_LINES_OF_OTHERS:])]
        if last and len(found) + len(shown) < MAX_LINES:
            found += shown
    if failure.resolution:
        found.append(failure.resolution)
    return found


def ranks(found: tuple[RankStatus, ...], culprit: int | None) -> list[str]:
    """One line a rank, those that failed by themselves first; the rest is counted."""
    found = tuple(replace(rank, is_collateral=False) if rank.rank == culprit else rank for rank in found)
    ordered = sorted(found, key=lambda rank: (rank.is_collateral or rank.phase == "Succeeded", rank.rank))
    shown = [f"{MARGIN}rank {rank.rank} ({rank.role}): {outcome(rank)}" for rank in ordered[:MAX_RANKS]]
    if len(ordered) > MAX_RANKS:
        shown.append(f"{MARGIN}and {len(ordered) - MAX_RANKS} more ranks")
    return ["The ranks:", *shown] if shown else []


def outcome(rank: RankStatus) -> str:
    where = f" on {rank.node}" if rank.node else ""
    if rank.is_collateral:
        return f"was stopped because of it{where}"
    if rank.phase == "Succeeded":
        return f"succeeded{where}"
    if rank.phase in ("Running", "Pending"):
        return f"was {rank.phase.lower()}{where}, stopped because of it"
    code = "" if rank.exit_code is None else f", exit code {rank.exit_code}"
    reason = (
        f" ({rank.reason}{code})" if rank.reason else (f" (exit code {rank.exit_code})" if rank.exit_code is not None else "")
    )
    return f"{rank.phase.lower()}{reason}{where}"
