"""Where what happens is told: Metaflow's echo, a terminal, a test's list."""

from __future__ import annotations

import sys
import threading
from typing import Protocol, TextIO


class Reporter(Protocol):
    """Both may be called from any thread."""

    def line(self, text: str) -> None:
        """Something about the workload as a whole."""

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        """A line that a rank has written; `timestamp` is RFC 3339 or ""."""


class StreamReporter:
    """Progress and logs to text streams, the logs marked with their rank."""

    def __init__(self, progress: TextIO | None = None, output: TextIO | None = None) -> None:
        self._progress = progress or sys.stderr
        self._output = output or sys.stdout
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        self._print(text, self._progress)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        self._print(f"[{role} {rank}] {line}", self._output)

    def _print(self, text: str, stream: TextIO) -> None:
        with self._lock:
            print(text, file=stream, flush=True)


class SilentReporter:
    """Tells nothing."""

    def line(self, text: str) -> None:
        pass

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        pass
