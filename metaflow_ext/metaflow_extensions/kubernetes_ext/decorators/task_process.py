"""Runs the step of a task as its child: passes on what it writes, keeps it in Metaflow's datastore, and judges its end.

    python -m metaflow_extensions.kubernetes_ext.decorators.task_process SCRIPT

One process for what core's script starts others for (mflog.tee for each stream; save_logs before the step, after it, and up to
four times a second meanwhile), each of which imports Metaflow first, on the cores that the step needs. The names of the files
and what is in them are core's (metaflow.mflog). Runs on Python 3.8, in the container.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from .completion import COMPLETE
from .stored_logs import Save, saver_of

INCOMPLETE = (
    "The process of this task ended with exit code 0 before the task was complete. Does the step's code call sys.exit() or "
    "os._exit()? A step ends by returning."
)
_STREAMS = {"stdout": "MFLOG_STDOUT", "stderr": "MFLOG_STDERR"}  # the variables that name their files
_FIRST_LOOK = 1.0  # seconds: first the step gets the processor
_SHARE = 0.05  # of its time that this process may spend with saving
_SMALL = 1 << 20  # bytes; larger logs are not read into memory
_REST_SECONDS = 5.0  # to wait for the rest of the output, where something that the step has started keeps it open
_LAST_SAVE_SECONDS = 60.0


def main(script: str) -> int:
    """The exit code of the step, as a shell would give it; 1 where it ended with 0 and was not complete."""
    stop = _Forward()
    step = subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stop.to(step)
    paths = {stream: Path(os.environ[name]) for stream, name in _STREAMS.items()}
    ends = {"stdout": (step.stdout, sys.stdout.buffer), "stderr": (step.stderr, sys.stderr.buffer)}
    pumps = [_thread(pass_on, pipe, out, paths[stream]) for stream, (pipe, out) in ends.items()]
    saver = Saver(paths, lambda: saver_of(os.environ))
    code = step.wait()
    for pump in pumps:
        pump.join(_REST_SECONDS)
    if code == 0 and not os.path.exists(os.environ[COMPLETE]):
        code = 1
        _tell(INCOMPLETE, paths["stderr"])
    saver.finish()
    return 128 - code if code < 0 else code


def leave(code: int) -> None:
    """At once: what the step has left running may hold its end of a pipe, and nobody is to wait for that."""
    for out in (sys.stdout, sys.stderr):
        with suppress(OSError):
            out.flush()
    os._exit(code)


class _Forward:
    """SIGTERM is for the step; what it then does is up to it."""

    def __init__(self) -> None:
        self._step: subprocess.Popen[bytes] | None = None
        self._came = False
        signal.signal(signal.SIGTERM, self._hear)

    def to(self, step: subprocess.Popen[bytes]) -> None:
        self._step = step
        if self._came:
            step.send_signal(signal.SIGTERM)

    def _hear(self, number: int, frame: Any) -> None:
        self._came = True
        if self._step is not None:
            self._step.send_signal(number)


def pass_on(pipe: IO[bytes], out: IO[bytes], path: Path) -> None:
    """Each line to `out` as it is, and with its time to the file. A full disk or a closed `out` does not stop the step."""
    with path.open("ab", buffering=0) as kept:
        for line in pipe:
            with suppress(OSError):
                kept.write(stamped(line))
            with suppress(OSError):
                out.write(line)
                out.flush()


def stamped(line: bytes) -> bytes:
    """As metaflow.mflog.mflog.decorate, version 0, which can't be had without the import of all of Metaflow."""
    now = datetime.fromtimestamp(time.time(), timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return b"[MFLOG|0|%sZ|task|%s]%s" % (now.encode(), uuid.uuid4().hex.encode(), line)


def _tell(text: str, path: Path) -> None:
    line = text.encode() + b"\n"
    with suppress(OSError), path.open("ab", buffering=0) as kept:
        kept.write(stamped(line))
    with suppress(OSError):
        sys.stderr.buffer.write(line)


class Saver:
    """Saves the files while they grow, often at first, in a thread; `save` takes {stream: content or path}."""

    def __init__(self, paths: Mapping[str, Path], connect: Callable[[], Save]) -> None:
        self._paths = paths
        self._connect = connect
        self._save: Save | None = None
        self._saved: dict[str, int] = {}
        self._is_over = threading.Event()
        self._thread = _thread(self._run)

    def finish(self) -> None:
        """Once more, for all that there is. What can't be saved is said, and is no failure of the step."""
        self._is_over.set()
        self._thread.join(_LAST_SAVE_SECONDS)
        if self._thread.is_alive():
            print("The last lines of this task's log could not be saved in time.", file=sys.stderr)

    def _run(self) -> None:
        from_start, delay = time.monotonic(), _FIRST_LOOK
        while not self._is_over.wait(delay):
            began = time.monotonic()
            with suppress(Exception):
                self._save_what_is_new()
            delay = max(_update_delay(began - from_start), (time.monotonic() - began) / _SHARE)
        try:
            self._save_what_is_new()
        except Exception as error:  # noqa: BLE001  (of any datastore)
            print(f"The log of this task could not be saved: {type(error).__name__}: {error}", file=sys.stderr)

    def _save_what_is_new(self) -> None:
        sizes = {stream: path.stat().st_size for stream, path in self._paths.items() if path.exists()}
        if sizes == self._saved:
            return
        self._save = self._save or self._connect()
        is_small = max(sizes.values()) < _SMALL
        self._save({stream: self._paths[stream].read_bytes() if is_small else self._paths[stream] for stream in sizes})
        self._saved = sizes


def _update_delay(seconds: float) -> float:
    """As metaflow.mflog.update_delay, for the same reason as `stamped`: often in the first ten minutes, then every 30 s."""
    return 0.25 + 30.0 / (1.0 + math.exp(9.0 - 0.01 * seconds))


def _thread(target: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


if __name__ == "__main__":
    leave(main(sys.argv[1]))
