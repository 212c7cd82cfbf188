"""A thread of every rank that looks whether the rank gets on, and leaves its stacks in the task's datastore: when it has stood
still for the limit, when it gets on again, and when somebody asks. Nothing is written while all goes well.

It must never fail a task, nor slow it or its end. Where C code keeps Python's lock this thread can't run: then faulthandler's
own thread writes the stacks to standard error. Decision 014.
"""

from __future__ import annotations

import faulthandler
import os
import random
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from . import gang_record, processes, stacks
from .standstill import Sample, Standstill

LIMIT = "METAFLOW_KUBERNETES_STALL_TIMEOUT"  # seconds, in the task's environment; 0: no thread at all
RANK, REQUEST = "stacks", "stacks_request"  # names of records: of each rank, and in control's task
STILL, MOVING, FINISHED = "still", "moving", "finished"

MOST_BEAT_SECONDS, LEAST_BEAT_SECONDS = 10.0, 1.0
_LOOKS = 4  # at the main thread's stack, in a beat


def limit() -> float:
    try:
        return max(0.0, float(os.environ.get(LIMIT) or 0))
    except ValueError:
        return 0.0


def beat_seconds(limit: float) -> float:
    return min(MOST_BEAT_SECONDS, max(LEAST_BEAT_SECONDS, limit / 6))


class HangWatch:
    """`write` takes this rank's record, `asked` gives the token of the last request or "". `progress` is (times, last text)."""

    def __init__(
        self,
        limit: float,
        identity: gang_record.Record,
        write: Callable[[gang_record.Record], None],
        asked: Callable[[], str],
        progress: Callable[[], tuple[int, str]],
        is_container: bool,
        beat: float | None = None,
    ) -> None:
        self._limit, self._identity = limit, identity
        self._seconds = beat_seconds(limit) if beat is None else beat
        self._write, self._asked, self._progress = write, asked, progress
        self._is_container = is_container
        self._answered, self._told = "", MOVING
        self._finished: float | None = None
        self._epoch = time.time() - time.monotonic()  # one for all, so that the same moment is always told alike
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._dump_later = faulthandler.dump_traceback_later
        self._is_guard_ours = True

    def start(self) -> None:
        setattr(faulthandler, "dump_traceback_later", self._users_dump_later)  # noqa: B010
        threading.Thread(target=self._run, name="hang-watch", daemon=True).start()

    def finish(self) -> None:
        """The step's code has ended; what comes now is waiting for others."""
        self._finished = time.monotonic()

    def stop(self) -> None:
        self._stopped.set()
        self._guard(False)
        setattr(faulthandler, "dump_traceback_later", self._dump_later)  # noqa: B010

    def _run(self) -> None:
        still: Standstill | None = None
        while not self._stopped.is_set():
            try:
                self._guard(True)
                sample = self._sample(self._places())
                still = still or Standstill(sample)
                still.see(sample)
                self._beat(still)
            except Exception:  # noqa: BLE001 - any storage's error: the next beat makes up for it
                continue

    def _places(self) -> frozenset[Any]:
        """Those in which the main thread is found during a beat; takes as long as that."""
        found = set()
        for _ in range(_LOOKS):
            self._stopped.wait(self._seconds / _LOOKS * random.uniform(0.9, 1.1))
            found.add(stacks.place(stacks.main_frame()))
        return frozenset(found)

    def _sample(self, places: frozenset[Any]) -> Sample:
        return Sample(
            at=time.monotonic(),
            places=places,
            output=_output(),
            progress=self._progress()[0],
            own_cpu=time.process_time() - time.thread_time(),
            others_cpu=processes.others_cpu(self._is_container),
        )

    def _beat(self, still: Standstill) -> None:
        if self._stopped.is_set():
            return
        since = still.since if self._finished is None else self._finished
        is_long = time.monotonic() - since >= self._limit
        state = FINISHED if self._finished is not None else STILL if is_long else MOVING
        worth_telling = state if is_long else MOVING
        asked = self._asked()
        if asked != self._answered or worth_telling != self._told:
            self._write(self._record(state, since, still.busy, asked))
            self._answered, self._told = asked, worth_telling

    def _record(self, state: str, since: float, busy: float, asked: str) -> gang_record.Record:
        return {
            **self._identity,
            "at": _iso(self._epoch + time.monotonic()),
            "state": state,
            "since": _iso(self._epoch + since),
            "busy": round(busy, 3),
            "progress": self._progress()[1],
            "answers": asked,
            "stack": stacks.described(stacks.main_frame()),
            "threads": stacks.others(),
        }

    def _guard(self, is_on: bool) -> None:
        """Have the stacks written to standard error when this thread can't run for the limit."""
        with self._lock:
            if not self._is_guard_ours:
                return
            if is_on and not self._stopped.is_set():
                self._dump_later(max(self._limit, 3 * self._seconds), exit=False, file=2)
            else:
                faulthandler.cancel_dump_traceback_later()

    def _users_dump_later(self, *args: Any, **kwargs: Any) -> None:
        """A process has one such timer; from now on it is the user's."""
        with self._lock:
            self._is_guard_ours = False
        self._dump_later(*args, **kwargs)


def _output() -> int:
    """What this task has written so far, where the files that keep it are known."""
    paths = [os.environ.get(name, "") for name in ("MFLOG_STDOUT", "MFLOG_STDERR")]
    return sum(os.path.getsize(path) for path in paths if os.path.exists(path))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
