"""Reading container logs: files of lines with times, as the shim writes them."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from ..api.agent import LogOptions
from ..controllers.objects import parse_time

FOLLOW_POLL = 0.05
_PIECE = 256 * 1024


def since(options: LogOptions, now: datetime.datetime) -> bytes:
    """The smallest time stamp wanted, comparable to those in the file; empty for all."""
    moment = parse_time(options.since_time)
    if options.since_seconds is not None:
        moment = now - datetime.timedelta(seconds=options.since_seconds)
    if moment is None:
        return b""
    utc = moment.astimezone(datetime.timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond:06d}000Z".encode()


class LineReader:
    """Turns raw log lines into what a client gets: with or without times, parts of long lines joined."""

    def __init__(self, *, timestamps: bool, since: bytes = b"") -> None:
        self._timestamps, self._since = timestamps, since
        self._is_continued = False

    def read(self, raw: bytes) -> bytes:
        """One line of the file (without its newline) as output."""
        stamp, _, rest = raw.partition(b" ")
        _, _, rest = rest.partition(b" ")
        tag, _, text = rest.partition(b" ")
        if stamp < self._since:
            return b""
        prefix = stamp + b" " if self._timestamps and not self._is_continued else b""
        self._is_continued = tag == b"P"
        return prefix + text + (b"" if self._is_continued else b"\n")


def last_lines(lines: list[bytes], count: int) -> list[bytes]:
    """The raw lines that make up the last `count` whole lines."""
    found = 0
    for position in range(len(lines) - 1, -1, -1):
        is_whole = lines[position].split(b" ", 3)[2:3] == [b"F"]
        if is_whole or position == len(lines) - 1:
            found += 1
        if found > count:
            return lines[position + 1 :]
    return lines if count else []


async def read_file(
    path: Path, options: LogOptions, now: datetime.datetime, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The log of one container run; with `follow` until `is_over` and everything has been read."""
    reader = LineReader(timestamps=options.timestamps, since=since(options, now))
    left = options.limit_bytes
    rest, is_first = b"", True
    while not path.exists():
        if not options.follow or is_over():
            return
        await asyncio.sleep(FOLLOW_POLL)
    with path.open("rb") as file:
        while True:
            was_over = is_over()
            data = file.read() if is_first else file.read(_PIECE)
            *lines, rest = (rest + data).split(b"\n")
            if is_first and options.tail_lines is not None:
                lines = last_lines(lines, options.tail_lines)
            is_first = False
            out = b"".join(map(reader.read, lines))
            if left is not None:
                out, left = out[:left], left - len(out[:left])
            if out:
                yield out
            if left == 0 or (not data and (was_over or not options.follow)):
                return
            if not data:
                await asyncio.sleep(FOLLOW_POLL)


def tail(path: Path, *, lines: int = 80, size: int = 2048) -> str:
    """The end of a log, for termination messages."""
    try:
        raw = path.read_bytes()[-size * 4 :].split(b"\n")
    except FileNotFoundError:
        return ""
    reader = LineReader(timestamps=False)
    text = b"".join(reader.read(line) for line in raw[-lines - 1 :] if line)
    return text[-size:].decode(errors="replace")
