"""Follows a container's log through broken connections: no line is lost, none comes twice.

The API resumes a log at a time stamp cut to seconds, so on resuming what was already seen of the last seconds is skipped.
Like `watch`, it knows nothing of HTTP.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Generator
from datetime import datetime, timedelta

from ..errors import ClusterError, NotFound, Rejected, Unavailable
from .retry import Backoff, pause

Line = tuple[str, str]
Open = Callable[[str], Generator[bytes, None, None]]  # since -> lines with their ends; raises ClusterError

_OVERLAP = timedelta(seconds=1)  # output and error are two pipes: a line may come after a slightly younger one
_LIVED_SECONDS = 2.0


def parse(raw: bytes) -> Line:
    """`2026-01-02T03:04:05.678901234Z text` -> (time stamp, text). A line without a time stamp keeps all its text."""
    text = raw.decode(errors="replace").rstrip("\n")
    stamp, space, rest = text.partition(" ")
    if _second(stamp) is None:
        return ("", text)
    return (stamp, rest if space else "")


def once(raw: Generator[bytes, None, None], since: str) -> Generator[Line, None, None]:
    """The lines younger than `since`."""
    with contextlib.closing(raw):
        yield from (line for line in map(parse, raw) if _is_younger(line, since) and not is_of_kubelet(line))


class Seen:
    """The lines of the last seconds, and from where to resume."""

    def __init__(self) -> None:
        self._lines: Counter[Line] = Counter()
        self._newest: datetime | None = None

    @property
    def since(self) -> str:
        """The `sinceTime` that repeats all that may be incomplete; "" before the first line."""
        return "" if self._newest is None else _text(self._newest - _OVERLAP)

    def add(self, line: Line) -> None:
        self._lines[line] += 1
        second = _second(line[0])
        if second is not None and (self._newest is None or second > self._newest):
            self._newest = second
            oldest = second - _OVERLAP
            self._lines = Counter({one: n for one, n in self._lines.items() if (_second(one[0]) or second) >= oldest})

    def repeated(self) -> Counter[Line]:
        """What a stream resumed at `since` will bring again."""
        return Counter(self._lines)


def follow(
    open_at: Open,
    *,
    since: str = "",
    sleep: Callable[[float], None],
    monotonic: Callable[[], float],
    backoff: Backoff,
) -> Generator[Line, None, None]:
    """The lines as they come, until the log is over: a resumed stream that ends at once with nothing new.

    Waits for a container that has not started. Raises NotFound if there is no such pod, Forbidden without permission.
    A pod that is gone while its log was followed ends the log.
    """
    seen = Seen()
    streams = 0
    delays = backoff.delays()
    while True:
        started_at, news, rest = monotonic(), 0, b""
        repeated = seen.repeated()
        error: ClusterError | None = None
        try:
            stream = open_at(seen.since or since)
            streams += 1
            with contextlib.closing(stream):
                for raw in stream:
                    if not raw.endswith(b"\n"):
                        rest = raw  # the end of the log, or a cut: then the next stream brings the whole line
                        break
                    line = parse(raw)
                    if is_of_kubelet(line):
                        continue
                    if repeated[line]:
                        repeated[line] -= 1
                        continue
                    seen.add(line)
                    if _is_younger(line, since):
                        news += 1
                        yield line
        except NotFound:
            if not streams:
                raise
            return
        except (Unavailable, Rejected) as caught:
            if isinstance(caught, Rejected) and not is_not_started(caught):
                raise
            error = caught
        if news:
            delays = backoff.delays()
        elif error is None and streams > 1 and monotonic() - started_at < _LIVED_SECONDS:
            if rest:
                yield parse(rest)
            return
        if error is not None:
            sleep(pause(next(delays), error))


def is_not_started(error: ClusterError) -> bool:
    """The kubelet has no container to read from yet: 400 `container "x" in pod "y" is waiting to start: ...`."""
    return error.status == 400 and ("waiting to start" in str(error) or "is not available" in str(error))


def is_of_kubelet(line: Line) -> bool:
    """What the kubelet writes in place of a log it can't read any more; its spelling is "retriece"."""
    return not line[0] and re.match(r"unable to retrie\w+ container logs for ", line[1]) is not None


def _is_younger(line: Line, since: str) -> bool:
    """A line without a time stamp is always told."""
    return not since or not line[0] or _key(line[0]) > _key(since)


def _key(stamp: str) -> tuple[datetime, str]:
    """Orders time stamps to the nanosecond, which datetime can't hold."""
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


def _text(second: datetime) -> str:
    return f"{second.isoformat(timespec='seconds')}Z"
