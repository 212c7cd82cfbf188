"""How far a workload is, in a few words: for the one line that a terminal refreshes, and for the lines that come now and then.

Pure: a status and a moment in, words out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from .describe import duration
from .model import Phase, WorkloadStatus

# Minutes in one phase after which a line says that it is still so; then every hour. In a queue only that: nothing is expected.
_WORKING = (5, 15, 60)
_QUEUED = (60,)
_HOUR = 60


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What was told so far. `quiet_since` is the last moment at which anything was told."""

    phase: Phase | None = None
    since: datetime | None = None
    quiet_since: datetime | None = None
    told: int = 0

    def seen(self, status: WorkloadStatus, at: datetime, *, has_news: bool) -> tuple[Progress, str]:
        """The next one, and the line to tell, "" for none. `has_news`: something else was just told, so that this can wait."""
        if status.phase is not self.phase or self.since is None or self.quiet_since is None:
            return Progress(phase=status.phase, since=at, quiet_since=at), ""
        heard = replace(self, quiet_since=at) if has_news else self
        elapsed = (at - self.since).total_seconds()
        if status.is_terminal or has_news or elapsed < 60 * self._due(status):
            return heard, ""
        is_quiet = (at - self.quiet_since).total_seconds() >= 60 * _WORKING[0]
        return replace(heard, told=self.told + 1), line(status, elapsed) if is_quiet else ""

    def _due(self, status: WorkloadStatus) -> int:
        """In minutes."""
        schedule = _QUEUED if status.phase is Phase.QUEUED else _WORKING
        beyond = max(0, self.told - len(schedule) + 1)
        return schedule[min(self.told, len(schedule) - 1)] + beyond * _HOUR


def line(status: WorkloadStatus, seconds: float) -> str:
    """ "Running for 15 min: 3 of 4 ranks run, 1 has succeeded." """
    start = f"{status.phase} for {duration(seconds)}"
    if status.phase is Phase.QUEUED:
        return f"{start}. {status.waiting.summary}" if status.waiting else f"{start}."
    why = f" {status.waiting.summary}" if status.waiting and not status.waiting.is_ordinary else ""
    return f"{start}: {counts(status)}.{why}"


def counts(status: WorkloadStatus) -> str:
    """ "3 of 4 ranks run, 1 has succeeded, 1 restart"."""
    running = [rank for rank in status.ranks if rank.phase == "Running"]
    unready = sum(1 for rank in running if not rank.ready)
    succeeded = sum(1 for rank in status.ranks if rank.phase == "Succeeded")
    restarts = status.restarts + sum(rank.restarts for rank in status.ranks)
    task = "the task runs" if running else "the task does not run"
    words = [f"{len(running)} of {status.size} ranks run" if status.size > 1 else task]
    if unready:
        words.append(f"{unready} not ready")
    if succeeded:
        words.append(f"{succeeded} {'has' if succeeded == 1 else 'have'} succeeded")
    if restarts:
        words.append(f"{restarts} restart{'' if restarts == 1 else 's'}")
    return ", ".join(words)
