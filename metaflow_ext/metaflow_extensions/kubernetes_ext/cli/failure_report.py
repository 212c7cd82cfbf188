"""The words a user reads when a workload has failed. Pure: a status in, lines out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ..status.describe import MARGIN
from ..status.model import Failure, Phase, RankStatus, WorkloadStatus
from .rank_lines import rank_lines
from .traceback_lines import traceback_end

MAX_LINES = 25
MAX_LAST_LINES = 10
MAX_LINES_OF_OTHERS = 3
MAX_WIDTH = 300  # characters; a message of an API server can quote a whole regular expression
PYTHON_ERROR = 1  # the exit code of an exception that nobody handled


def lines(status: WorkloadStatus, others: Mapping[int, Sequence[str]] | None = None) -> list[str]:
    """Which rank failed first, where, why; category and times; its last lines, what became of the others, what to do.

    `others` are the last lines of further ranks that failed by themselves, shown as far as there is room. Long lines are cut: all
    of them is in the JSON form (status/record.py).
    """
    failure = status.failure
    if failure is None:
        return [f"The workload ended as {status.phase}. {status.message}".rstrip()]
    found = [failure.summary, facts(status, failure), *last_lines(failure)]
    ranks = [f"{MARGIN}{line}" for line in rank_lines(status.ranks, failure)] if status.size > 1 else []
    found += events(failure, room=MAX_LINES - len(found) - len(ranks) - 2)
    if ranks:
        found += ["The ranks:", *ranks]
    for rank, last in sorted((others or {}).items()):
        shown = [f"The last lines of rank {rank}:", *(f"{MARGIN}{line}" for line in last[-MAX_LINES_OF_OTHERS:])]
        if last and len(found) + len(shown) < MAX_LINES:
            found += shown
    if failure.resolution:
        found.append(failure.resolution)
    return [line if len(line) <= MAX_WIDTH else f"{line[:MAX_WIDTH]} ..." for line in found]


def facts(status: WorkloadStatus, failure: Failure) -> str:
    """ "Category user_error, @retry applies. It ran for 34 s, from 12:00:04 to 12:00:38 UTC." """
    known = f"Category {failure.category}"
    if status.phase is not Phase.GONE:
        known += ", @retry applies" if failure.is_retryable else ", @retry does not apply"
    culprit = next((rank for rank in status.ranks if rank.rank == failure.rank), None)
    when = _times(culprit, failure.at)
    return f"{known}. {when}" if when else f"{known}."


def _times(culprit: RankStatus | None, at: datetime | None) -> str:
    start = culprit.started_at if culprit else None
    end = (culprit.finished_at if culprit else None) or at
    if start and end and start <= end:
        return f"It ran for {round((end - start).total_seconds())} s, from {start:%H:%M:%S} to {end:%H:%M:%S} UTC."
    return f"It happened at {end:%H:%M:%S} UTC." if end else ""


def events(failure: Failure, room: int) -> list[str]:
    """What else the cluster said of the pod, the latest if there is no room for all."""
    return [f"Event {line}" for line in failure.events[-room:]] if room > 0 else []


def last_lines(failure: Failure) -> list[str]:
    """The end of a traceback where the program ended by it, else just its last lines."""
    if not failure.last_lines:
        return []
    traceback = traceback_end(failure.last_lines, MAX_LAST_LINES) if failure.exit_code == PYTHON_ERROR else []
    head = "The end of its traceback:" if traceback else "Its last lines:"
    return [head, *(f"{MARGIN}{line}" for line in traceback or failure.last_lines[-MAX_LAST_LINES:])]
