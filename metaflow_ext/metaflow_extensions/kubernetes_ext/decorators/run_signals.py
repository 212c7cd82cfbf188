"""SIGTERM and SIGHUP to the process of a run, for which core installs no handler: it would be gone at once, its step processes
and their workloads would go on. They become what Ctrl-C in a terminal is: every step process is told, the run ends as
interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def install() -> None:
    """Where nobody else has a handler. Only the main thread can; a run in another (a notebook's) is left as it is."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: Any) -> None:
    for child in children(os.getpid()):
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            continue
    raise KeyboardInterrupt(signal.Signals(number).name)


def children(pid: int) -> list[int]:
    """Direct children of a process: from /proc on Linux, else from pgrep."""
    tasks = sorted(Path("/proc", str(pid), "task").glob("*/children"))
    if tasks:
        return [int(child) for task in tasks for child in task.read_text().split()]
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(child) for child in listed.stdout.split()]
