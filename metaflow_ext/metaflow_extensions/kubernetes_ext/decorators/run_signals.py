"""Signals to the process of a run.

For SIGTERM and SIGHUP core installs no handler: it would be gone at once, its step processes and their workloads would go on.
They become what Ctrl-C in a terminal is: every step process is told, the run ends as interrupted. Ctrl-C itself reaches all
processes of a terminal, but SIGINT by `kill` or from a notebook only the run, and core tells nobody: those that follow workloads
hear it from us, who don't mind to hear it twice.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

_DEFAULTS = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGHUP: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}


def install() -> None:
    """Where nobody else has a handler. Only the main thread can; a run in another (a notebook's) is left as it is."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, default in _DEFAULTS.items():
        if signal.getsignal(number) is default:
            signal.signal(number, _interrupt)


def _interrupt(number: int, frame: Any) -> None:
    for child in children(os.getpid()):
        if number != signal.SIGINT or follows_a_workload(child):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)
    raise KeyboardInterrupt(signal.Signals(number).name)


def follows_a_workload(pid: int) -> bool:
    """Whether it is `python flow.py ... kubernetes step ...`."""
    try:
        words = Path("/proc", str(pid), "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        shown = subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False)
        words = shown.stdout.split()
    return ("kubernetes", "step") in pairwise(words)


def children(pid: int) -> list[int]:
    """Direct children of a process: from /proc on Linux, else from pgrep."""
    tasks = sorted(Path("/proc", str(pid), "task").glob("*/children"))
    if tasks:
        return [int(child) for task in tasks for child in task.read_text().split()]
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(child) for child in listed.stdout.split()]
