"""What happened to a workload and when: kept as task metadata, read by `kubernetes why` and the card."""

from __future__ import annotations

import threading
from collections import deque
from datetime import datetime

_FIRST, _LAST = 40, 160  # entries that are kept: how it began and how it ended
_LONGEST = 1000  # characters of an entry


class Timeline:
    """Entries in the order they became known; of very many, those in the middle are left out. For any thread."""

    def __init__(self) -> None:
        self._first: list[tuple[datetime, str]] = []
        self._last: deque[tuple[datetime, str]] = deque(maxlen=_LAST)
        self._left_out = 0
        self._lock = threading.Lock()

    def add(self, at: datetime, what: str) -> None:
        entry = (at, what[:_LONGEST])
        with self._lock:
            if len(self._first) < _FIRST:
                self._first.append(entry)
                return
            self._left_out += len(self._last) == _LAST
            self._last.append(entry)

    @property
    def entries(self) -> tuple[tuple[datetime, str], ...]:
        with self._lock:
            gap = [(self._last[0][0], f"({self._left_out} more entries are left out.)")] if self._left_out else []
            return (*self._first, *gap, *self._last)

    def as_json(self) -> list[dict[str, str]]:
        """`[{"at": RFC 3339, "what": text}]`."""
        return [{"at": at.isoformat(timespec="milliseconds"), "what": what} for at, what in self.entries]
