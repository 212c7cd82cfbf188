"""When a failing connection is worth telling, and when its end is. Pure.

A watch that fails and works again within seconds is nobody's business; an outage is told once, and its end once.
"""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime

TELL_AFTER_SECONDS = 10.0


class Outage:
    """Fed by everything that talks to the server, each under a key of its own."""

    def __init__(self) -> None:
        self._failing: dict[Hashable, str] = {}
        self._since: datetime | None = None
        self._is_told = False

    @property
    def since(self) -> datetime | None:
        """When the server was first not reached, None while it is."""
        return self._since

    def hear(self, key: Hashable, error: str | None, at: datetime) -> None:
        """A failed try, or None: it works again."""
        if error is None:
            self._failing.pop(key, None)
        else:
            self._failing[key] = error
            self._since = self._since or at

    def news(self, at: datetime) -> str | None:
        """What is to be told now, if anything."""
        if self._since is None:
            return None
        lasted = (at - self._since).total_seconds()
        if self._failing and not self._is_told and lasted >= TELL_AFTER_SECONDS:
            self._is_told = True
            return f"{next(iter(self._failing.values()))} The workload goes on; trying again until the server answers."
        if not self._failing:
            told, self._is_told, self._since = self._is_told, False, None
            return f"The API server answers again, after {_duration(lasted)}." if told else None
        return None


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
