"""Where what happens is told: Metaflow's echo, a terminal, a test's list."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Both may be called from any thread."""

    def line(self, text: str) -> None:
        """Something about the workload as a whole."""

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        """A line that a rank has written; `timestamp` is RFC 3339 or ""."""
