"""What happened to a workload and when: kept as task metadata, read by `kubernetes why` and the card."""

from __future__ import annotations

import threading
from datetime import datetime


class Timeline:
    """Entries in the order they became known. For any thread."""

    def __init__(self) -> None:
        self._entries: list[tuple[datetime, str]] = []
        self._lock = threading.Lock()

    def add(self, at: datetime, what: str) -> None:
        with self._lock:
            self._entries.append((at, what))

    @property
    def entries(self) -> tuple[tuple[datetime, str], ...]:
        with self._lock:
            return tuple(self._entries)

    def as_json(self) -> list[dict[str, str]]:
        """`[{"at": RFC 3339, "what": text}]`."""
        return [{"at": at.isoformat(timespec="milliseconds"), "what": what} for at, what in self.entries]
