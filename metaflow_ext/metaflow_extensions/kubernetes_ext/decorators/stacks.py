"""The Python stacks of this very process, as the user's code has made them. Cheap to look at, a little dearer to describe."""

from __future__ import annotations

import linecache
import os
import sys
import threading
from typing import Any

MOST_FRAMES = 40  # of a stack: its beginning and its end
MOST_THREADS = 16
_LONGEST_LINE = 160  # characters
_PACKAGES = ("site-packages", "dist-packages")


def main_frame() -> Any:
    return sys._current_frames().get(threading.main_thread().ident or 0)


def place(frame: Any) -> tuple[Any, ...]:
    """Where a stack stands: equal for equal stacks of calls, line by line."""
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def described(frame: Any) -> list[list[Any]]:
    """`[[file, line, function, code], ...]` with the outermost call first, without the frames that every task has."""
    found = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    found = _of_user(found[::-1])
    if len(found) > MOST_FRAMES:
        found = found[: MOST_FRAMES // 2] + found[-MOST_FRAMES // 2 :]
    return [_described(one) for one in found]


def others() -> list[dict[str, Any]]:
    """The stacks of the other threads, as far as there are few."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    left_out = (threading.main_thread().ident, threading.get_ident())
    frames = [(ident, frame) for ident, frame in sys._current_frames().items() if ident not in left_out]
    return [{"thread": names.get(ident, str(ident)), "stack": described(frame)} for ident, frame in frames[:MOST_THREADS]]


def _described(frame: Any) -> list[Any]:
    name, line = frame.f_code.co_filename, frame.f_lineno or 0
    code = linecache.getline(name, line, frame.f_globals).strip()
    return [_short(name), line, frame.f_code.co_name, code[:_LONGEST_LINE]]


def _of_user(frames: list[Any]) -> list[Any]:
    """What comes after Metaflow's call of the step, and after the decorators around that."""
    calls = [index for index, frame in enumerate(frames) if frame.f_code.co_name == "_exec_step_function"]
    first = calls[-1] + 1 if calls else 0
    while first < len(frames) and calls and _is_metaflow(frames[first]):
        first += 1
    return frames[first:] or frames


def _is_metaflow(frame: Any) -> bool:
    return str(frame.f_globals.get("__name__")).split(".")[0] in ("metaflow", "metaflow_extensions")


def _short(name: str) -> str:
    """Relative to the working directory or to where packages are installed."""
    parts = name.split(os.sep)
    for folder in _PACKAGES:
        if folder in parts:
            return "/".join(parts[parts.index(folder) + 1 :])
    here = os.getcwd() + os.sep
    return name[len(here) :] if name.startswith(here) else name
