"""What a step process prints: lines of the ranks in Metaflow's log format, and what we have to say ourselves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from metaflow.mflog import TASK_LOG_SOURCE
from metaflow.mflog.mflog import decorate


class TaskReporter:
    """A `runtime.reporter.Reporter`. Any thread may call.

    Lines of ranks are structured log lines: core's runtime shows them with their own time and does not store them again, since
    every task stores its own. All goes to one stream, standard error: core reads its two pipes in no certain order.
    """

    def __init__(self, echo: Callable[..., Any], is_gang: bool) -> None:
        self._echo = echo
        self._is_gang = is_gang
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        with self._lock:
            self._echo(text, err=True)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        prefix = f"[rank {rank}] " if self._is_gang else ""
        structured = decorate(TASK_LOG_SOURCE, prefix + line, now=parse_time(timestamp))
        with self._lock:
            sys.stderr.buffer.write(structured + b"\n")
            sys.stderr.buffer.flush()


def parse_time(timestamp: str) -> datetime:
    """Naive UTC, as Metaflow's log format wants it, of an RFC 3339 time stamp with up to nanoseconds; now where it is none."""
    text = timestamp.rstrip("Z")
    seconds, _, fraction = text.partition(".")
    try:
        return datetime.strptime(f"{seconds}.{fraction[:6] or '0'}", "%Y-%m-%dT%H:%M:%S.%f")
    except ValueError:
        return datetime.now(timezone.utc).replace(tzinfo=None)
