"""What is known of a container's log while it is read: no line is lost, none comes twice, whatever happens to connections.

The API resumes a log at a time stamp cut to seconds, so on resuming what was already seen of the last seconds is skipped. If
nothing of it comes, the log begins anew (the node has rotated it, or the container was started again): then lines may be
missing. Kubelets don't tell when they lose lines themselves: one that starts a new file while its reader is far behind goes
on with the newest file, and reads that twice, which shows in the times running backwards. Like `watch`, this knows nothing
of HTTP.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from datetime import datetime, timedelta

from ..errors import ClusterError, NotFound, Unavailable
from .protocol import LogGap, LogLine
from .retry import Backoff, pause

Line = tuple[str, str]
Open = Callable[[str, "int | None"], Generator[bytes, None, None]]  # since, tail -> the log in pieces; raises ClusterError

_OVERLAP = timedelta(seconds=1)  # output and error are two pipes: a line may come after a slightly younger one
_LONGEST_PAUSE = 5.0  # between two looks at a log that has ended while its container has not


def parse(raw: bytes) -> Line:
    """`2026-01-02T03:04:05.678901234Z text` -> (time stamp, text). A line without a time stamp keeps all its text."""
    text = raw.decode(errors="replace").rstrip("\n")
    stamp, space, rest = text.partition(" ")
    if _second(stamp) is None:
        return ("", text)
    return (stamp, rest if space else "")


class Seen:
    """The lines of the last seconds, as hashes, and from where to resume."""

    def __init__(self) -> None:
        self.last = ""  # the time stamp of the last line
        self._lines: dict[datetime, Counter[int]] = {}
        self._second: datetime | None = None

    @property
    def since(self) -> str:
        """The `sinceTime` that repeats all that may be incomplete; "" before the first line."""
        return "" if self._second is None else f"{(self._second - _OVERLAP).isoformat(timespec='seconds')}Z"

    def is_back(self, line: Line) -> bool:
        """Whether the line is older than any that may still come."""
        second = _second(line[0])
        return second is not None and self._second is not None and second < self._second - _OVERLAP

    def add(self, line: Line) -> None:
        second = _second(line[0]) or self._second
        if second is None:
            return  # no line with a time has come yet: there is no resuming, but from the start
        if self._second is None or second > self._second:
            self._second = second
            for old in [one for one in self._lines if one < second - _OVERLAP]:
                del self._lines[old]
        self._lines.setdefault(second, Counter())[hash(line)] += 1
        self.last = line[0] or self.last

    def repeated(self) -> Counter[int]:
        """What a stream resumed at `since` will bring again."""
        return sum(self._lines.values(), Counter())


class Followed:
    """One log, read by any number of streams: `start`, `feed` what comes, and `end` when nothing comes any more.

    `since` (a time stamp) and `tail` (a number of lines) are where its reader wants it to begin. `container_ended` says
    that nothing will be added to it.
    """

    def __init__(self, key: str, *, since: str = "", tail: int | None = None, backoff: Backoff) -> None:
        self.key = key
        self.container_ended = False
        self.has_news = False  # in this stream
        self._wanted = since
        self._tail = tail
        self._seen = Seen()
        self._backoff = backoff
        self._delays = backoff.delays()
        self._is_last = self._was_cut = False

    def start(self) -> tuple[str, int | None]:
        """A stream begins; the `sinceTime` and `tailLines` to open it with."""
        self._repeated = self._seen.repeated()
        self._is_joined = not self._repeated
        self._rest = bytearray()
        self._is_last = self.container_ended
        self.has_news = False
        return (self._seen.since, None) if self._seen.since else (self._wanted, self._tail)

    def feed(self, piece: bytes) -> Iterator[LogLine | LogGap]:
        """The lines that the next piece of the stream completes."""
        if b"\n" not in piece:
            self._rest += piece
            return
        *whole, rest = (bytes(self._rest) + piece).split(b"\n")
        self._rest = bytearray(rest)
        for raw in whole:
            yield from self._line(raw)

    def rest(self) -> Iterator[LogLine | LogGap]:
        """The log is over: its last line may have no end."""
        if self._rest:
            yield from self._line(bytes(self._rest))
        if not self._is_joined:
            yield LogGap(self.key, self._seen.last, "")

    def end(self, error: ClusterError | None = None) -> float | None:
        """The stream is over, or could not be opened. Seconds after which to go on with another; None: the log is over.

        Raises `error` where it is for ever. A container that has not started is waited for.
        """
        if error is None and self._is_last:
            return None
        if error is not None and not isinstance(error, Unavailable) and (self._is_last or not is_not_started(error)):
            if not isinstance(error, NotFound):
                raise error
            self._is_joined = not (self._was_cut and self._seen.last)  # else it was read to its end
            return None
        self._was_cut = error is not None
        if self.has_news:
            self._delays = self._backoff.delays()
        delay = next(self._delays)
        return min(delay, _LONGEST_PAUSE) if error is None else pause(delay, error)

    def _line(self, raw: bytes) -> Iterator[LogLine | LogGap]:
        line = parse(raw)
        if is_of_kubelet(line):
            self._is_joined = True
            return
        if self._repeated[hash(line)] > 0:
            self._repeated[hash(line)] -= 1
            self._is_joined = True
            return
        if not self._is_joined or self._seen.is_back(line):
            yield LogGap(self.key, self._seen.last, line[0])
            self._is_joined = True
            self._seen = Seen()
        self._seen.add(line)
        if _is_younger(line, self._wanted):
            self.has_news = True
            yield LogLine(self.key, *line)


def read(followed: Followed, open_at: Open) -> Generator[LogLine | LogGap, None, None]:
    """The log as far as it goes now. A stream that breaks is resumed, as long as that brings something."""
    while True:
        stream = open_at(*followed.start())
        try:
            with contextlib.closing(stream):
                for piece in stream:
                    yield from followed.feed(piece)
            yield from followed.rest()
            return
        except Unavailable:
            if not followed.has_news:
                raise


def is_not_started(error: ClusterError) -> bool:
    """The kubelet has no container to read from yet: 400 `container "x" in pod "y" is waiting to start: ...`."""
    return error.status == 400 and ("waiting to start" in str(error) or "is not available" in str(error))


def is_of_kubelet(line: Line) -> bool:
    """What the kubelet writes in place of a log it can't read any more; its spelling is "retriece"."""
    return not line[0] and re.match(r"unable to retrie\w+ container logs for ", line[1]) is not None


def _is_younger(line: Line, since: str) -> bool:
    """A line without a time stamp is always told."""
    return not since or not line[0] or order(line[0]) > order(since)


def order(stamp: str) -> tuple[datetime, str]:
    """Orders time stamps to the nanosecond, which datetime can't hold, whatever the nodes' zones."""
    second = _second(stamp)
    fraction = re.match(r"[0-9]*", stamp.partition(".")[2])
    return (second or datetime.min, (fraction.group() if fraction else "")[:9].ljust(9, "0"))


def _second(stamp: str) -> datetime | None:
    """The stamp's second, naive UTC. Kubelets write the node's zone: 2026-01-02T03:04:05.678+02:00."""
    try:
        head = datetime.fromisoformat(stamp[:19])
        zone = stamp[19:].lstrip(".0123456789")
        if len(stamp) < 20 or not zone:
            return None
        if zone in ("Z", "z"):
            return head
        shifted = datetime.fromisoformat(f"{stamp[:19]}{zone}")
        offset = shifted.utcoffset()
        return head - offset if offset else head
    except ValueError:
        return None
