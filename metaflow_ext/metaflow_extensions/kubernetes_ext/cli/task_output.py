"""What a step process prints: lines of the ranks in Metaflow's log format, and what we have to say ourselves."""

from __future__ import annotations

import array
import fcntl
import sys
import termios
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from metaflow.mflog import TASK_LOG_SOURCE
from metaflow.mflog.mflog import decorate

from ..cluster.logs import order

_LONGEST_WAIT = 0.1  # seconds


class TaskReporter:
    """A `runtime.reporter.Reporter`. Any thread may call.

    Lines of ranks are structured log lines: core's runtime shows them with their own time and does not store them again, since
    every task stores its own. All goes to one stream, standard error: core reads its two pipes in no certain order. And core shows
    one line each time that something comes, however much has come: so every line waits, for a moment, until those before it are
    taken, or the last ones of a burst would not be seen until the next.
    """

    def __init__(self, echo: Callable[..., Any], is_gang: bool) -> None:
        self._echo = echo
        self._is_gang = is_gang
        self._lock = threading.Lock()

    def line(self, text: str) -> None:
        with self._lock:
            for each in text.splitlines() or [""]:
                _wait_until_taken()
                self._echo(each, err=True)

    def log(self, role: str, rank: int, timestamp: str, line: str) -> None:
        prefix = f"[rank {rank}] " if self._is_gang else ""
        structured = decorate(TASK_LOG_SOURCE, prefix + line, now=parse_time(timestamp))
        with self._lock:
            _wait_until_taken()
            sys.stderr.buffer.write(structured + b"\n")
            sys.stderr.buffer.flush()


def _wait_until_taken() -> None:
    """Until the reader at the other end has taken what was written. Where that can't be told, or takes long: no longer."""
    give_up_at = time.monotonic() + _LONGEST_WAIT
    waiting = array.array("i", [0])
    try:
        while time.monotonic() < give_up_at and fcntl.ioctl(sys.stderr.fileno(), termios.FIONREAD, waiting) == 0 and waiting[0]:
            time.sleep(0.0001)
    except (OSError, ValueError):  # no pipe
        pass


def parse_time(timestamp: str) -> datetime:
    """Naive UTC, as Metaflow's log format wants it, of an RFC 3339 time stamp with up to nanoseconds; now where it is none."""
    second, fraction = order(timestamp)
    if second == datetime.min:
        return datetime.now(timezone.utc).replace(tzinfo=None)
    return second + timedelta(microseconds=int(fraction[:6]))
