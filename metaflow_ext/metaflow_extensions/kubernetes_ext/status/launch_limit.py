"""How long a workload may take to start: a limit that never counts the time in a queue. Pure: a status and a moment in, words out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from .describe import sentence
from .model import Category, Failure, Phase, WorkloadStatus

_LAUNCHING = (Phase.PENDING, Phase.STARTING)


@dataclass(frozen=True, kw_only=True)
class LaunchLimit:
    """What was seen so far. The limits are in seconds; 0 is none.

    `launch` counts from the creation, from the admission by a queue, or from the loss of a rank, until all ranks run;
    `image_pull` while a rank's image can't be had.
    """

    launch: int = 0
    image_pull: int = 0
    launching_since: datetime | None = None
    pulling_since: datetime | None = None

    def seen(self, status: WorkloadStatus, at: datetime) -> LaunchLimit:
        """With this status seen at this moment."""
        is_pulling = status.waiting is not None and status.waiting.category is Category.IMAGE_PULL
        return replace(
            self,
            launching_since=(self.launching_since or at) if status.phase in _LAUNCHING else None,
            pulling_since=(self.pulling_since or at) if is_pulling else None,
        )

    def exceeded(self, status: WorkloadStatus, at: datetime) -> Failure | None:
        """The failure of a workload that takes too long, named by what it waits for."""
        if self.image_pull and self.pulling_since and (at - self.pulling_since).total_seconds() >= self.image_pull:
            return _failure(status, at, Category.IMAGE_PULL, f"for {self.image_pull} s (image_pull_timeout)")
        if self.launch and self.launching_since and (at - self.launching_since).total_seconds() >= self.launch:
            return _failure(status, at, Category.LAUNCH_TIMEOUT, f"within {self.launch} s (launch_timeout)")
        return None


def _failure(status: WorkloadStatus, at: datetime, category: Category, limit: str) -> Failure:
    waiting = status.waiting
    why = waiting.summary if waiting else "Nothing says why."
    late_words = "The task did not run" if status.size == 1 else "Not all ranks ran"
    summary = f"{why[:-1]}, {limit}." if category is Category.IMAGE_PULL else f"{late_words} {limit}: {why}"
    not_running = [rank for rank in status.ranks if rank.phase not in ("Running", "Succeeded")]
    late = next((rank for rank in not_running if rank.reason), not_running[0] if not_running else None)
    return Failure(
        category=category,
        summary=summary,
        resolution=_resolution(category, waiting.detail if waiting else ""),
        role=late.role if late else "",
        rank=late.rank if late else None,
        pod=late.pod if late else "",
        node=late.node if late else "",
        reason=late.reason if late else "",
        at=at,
    )


def _resolution(category: Category, detail: str) -> str:
    """Of an image the detail is only what the registry said; else it is what to do."""
    if category is Category.IMAGE_PULL and detail:
        return f"{_RESOLUTIONS[category]} What was said: {sentence(detail)}"
    return detail or _RESOLUTIONS[category]


_RESOLUTIONS = {
    Category.IMAGE_PULL: "Correct @kubernetes(image=...), or its pull secret, or give the registry more time with image_pull_timeout.",
    Category.LAUNCH_TIMEOUT: "Correct what it waits for, or give it more time with @kubernetes(launch_timeout=...).",
}
