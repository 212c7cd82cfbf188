"""The part of a program's last lines that says why it failed: of a Python traceback its last frames and the exception. Pure."""

from __future__ import annotations

from collections.abc import Sequence

_HEAD = "Traceback (most recent call last):"
_FRAME = '  File "'
_MOST_OF_EXCEPTION = 3  # lines: a message may have many


def traceback_end(lines: Sequence[str], most: int) -> list[str]:
    """At most `most` lines: whole frames, the innermost ones, then the exception. Empty where no traceback is in `lines`.

    The last traceback counts: of chained ones it is that of the exception which nobody handled. The beginning of a long one may
    be missing.
    """
    heads = [number for number, line in enumerate(lines) if line.strip() == _HEAD]
    frames = [number for number, line in enumerate(lines) if line.startswith(_FRAME)]
    if heads:
        margin, start = lines[heads[-1]][: lines[heads[-1]].index(_HEAD)], heads[-1] + 1
    elif frames:
        margin, start = "", frames[0]
    else:
        return []
    told = [line.removeprefix(margin) for line in lines[start:]]
    end = next((number for number, line in enumerate(told) if line and not line.startswith(" ")), None)
    if end is None:  # cut off before the exception
        return []
    exception = _until_blank(told[end : end + _MOST_OF_EXCEPTION])
    shown: list[str] = []
    for frame in reversed(_frames(told[:end])):
        if len(frame) + len(shown) + len(exception) > most:
            break
        shown = frame + shown
    return [*shown, *exception]


def _frames(lines: Sequence[str]) -> list[list[str]]:
    """The place and the code of each frame, without the line of carets below it."""
    found: list[list[str]] = []
    for line in lines:
        if line.startswith(_FRAME):
            found.append([line])
        elif found and line.strip(" ^~"):
            found[-1].append(line)
    return found


def _until_blank(lines: Sequence[str]) -> list[str]:
    blank = next((number for number, line in enumerate(lines) if not line.strip()), len(lines))
    return [*lines[:blank]]
