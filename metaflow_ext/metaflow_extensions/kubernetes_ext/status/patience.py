"""How long a probe is waited for: not as long as a run would, since what does not start soon is what the probe is to find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from .model import Category, WorkloadStatus

# Seconds after which the reason for waiting is the answer. Events come after 5 s (runtime.closer_look).
_SECONDS = {Category.IMAGE_PULL: 8, Category.REJECTED: 8, Category.UNSCHEDULABLE: 12, Category.QUOTA: 12}


@dataclass(frozen=True, kw_only=True)
class Patience:
    """What was seen so far. `limit` is in seconds, for all together: an image may take its time."""

    limit: float
    started: datetime
    category: Category | None = None
    since: datetime | None = None

    def seen(self, status: WorkloadStatus, at: datetime) -> Patience:
        """With this status seen at this moment."""
        category = status.waiting.category if status.waiting else None
        return self if category is self.category else replace(self, category=category, since=at)

    def is_over(self, status: WorkloadStatus, at: datetime) -> bool:
        if status.is_terminal or (status.waiting is not None and status.waiting.is_hopeless):
            return True
        if self.category in _SECONDS and self.since and (at - self.since).total_seconds() >= _SECONDS[self.category]:
            return True
        return (at - self.started).total_seconds() >= self.limit
