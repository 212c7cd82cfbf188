"""What became of each rank of a failed gang: a line for each, or, in a large gang, for all of equal fate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..status.model import Category, Failure, RankStatus

MAX_SINGLE = 8  # ranks that have a line each
MAX_LINES = 8


# Of the culprit: whether its pod is gone already when it is told is a race.
_TAKEN_AWAY = {
    Category.EVICTED: "was evicted",
    Category.PREEMPTED: "was preempted",
    Category.NODE_LOST: "was lost with its node",
    Category.DELETED: "was deleted",
}


def rank_lines(found: Sequence[RankStatus], failure: Failure) -> list[str]:
    """Those that failed by themselves first (the culprit before all where ranks are folded), the others by number, whether they
    still ran when they were told or not; lines beyond the limit are counted."""
    culprit = failure.rank
    ranks = [replace(rank, is_collateral=False) if rank.rank == culprit else rank for rank in found]
    ordered = sorted(ranks, key=lambda rank: (rank.rank != culprit and not _failed_by_itself(rank), rank.rank))
    if len(ordered) <= MAX_SINGLE:
        return [_line([rank], failure) for rank in ordered]
    groups: dict[tuple[bool, str, str], list[RankStatus]] = {}
    for rank in sorted(ordered, key=lambda rank: rank.rank != culprit):
        groups.setdefault((rank.rank == culprit, rank.role, _fate(rank, failure)), []).append(rank)
    lines = [_line(group, failure) for group in groups.values()]
    left = sum(len(group) for group in [*groups.values()][MAX_LINES:])
    return [*lines[:MAX_LINES], *([f"and {left} more ranks"] if left else [])]


def _failed_by_itself(rank: RankStatus) -> bool:
    return rank.phase == "Failed" and not rank.is_collateral


def _line(group: Sequence[RankStatus], failure: Failure) -> str:
    first, fate = group[0], _fate(group[0], failure)
    nodes = sorted({rank.node for rank in group if rank.node})
    where = "" if not nodes else f" on {nodes[0]}" if len(nodes) == 1 else f" on {len(nodes)} nodes"
    if len(group) == 1:
        return f"rank {first.rank} ({first.role}){where}: {fate}"
    many = f"were {fate.removeprefix('was ')}" if fate.startswith("was ") else fate
    return f"ranks {ranges([rank.rank for rank in group])} ({len(group)} {first.role}s){where}: {many}"


def _fate(rank: RankStatus, failure: Failure) -> str:
    if rank.rank == failure.rank and failure.category in _TAKEN_AWAY:
        return _TAKEN_AWAY[failure.category]
    if rank.is_collateral:
        return "was stopped because of it"
    if rank.phase == "Succeeded":
        return "succeeded"
    if rank.phase in ("Running", "Pending"):
        return f"was {rank.phase.lower()}" + ("" if rank.rank == failure.rank else ", stopped because of it")
    facts = [rank.reason] if rank.reason else []
    facts += [] if rank.exit_code is None else [f"exit code {rank.exit_code}"]
    return rank.phase.lower() + (f" ({', '.join(facts)})" if facts else "")


def ranges(numbers: Sequence[int], most: int = 4) -> str:
    """ "1-3, 5, 7-63"; more than `most` pieces end in "..."."""
    pieces: list[list[int]] = []
    for number in sorted(numbers):
        if pieces and number == pieces[-1][-1] + 1:
            pieces[-1] = [pieces[-1][0], number]
        else:
            pieces.append([number])
    shown = ", ".join("-".join(map(str, piece)) for piece in pieces[:most])
    return f"{shown}, ..." if len(pieces) > most else shown
