"""Shows what ranks write, as they write it, and keeps each one's last lines: one thread, however many ranks are followed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

from ..cluster.protocol import ClusterClient, LogEnd, LogGap, LogLine, LogPiece, Tails
from ..errors import ClusterError, Forbidden, NotFound
from ..status.model import RankStatus
from .reporter import Reporter

KEPT_LINES = 100  # a traceback through Metaflow alone has fifty


def selected(which: str | Iterable[int], rank: RankStatus, control_rank: int = 0) -> bool:
    """`which` is "all", "control", "none", or the ranks as a list or as text ("0,3")."""
    if which == "all":
        return True
    if which == "control":
        return rank.rank == control_rank
    if which == "none" or which == "":
        return False
    ranks = which.split(",") if isinstance(which, str) else which
    return str(rank.rank) in {str(one).strip() for one in ranks}


class _Log:
    def __init__(self, rank: RankStatus, is_shown: bool) -> None:
        self.rank = rank
        self.is_shown = is_shown
        self.container_ended = False
        self.over = threading.Event()
        self.lines = 0
        self.kept: deque[str] = deque(maxlen=KEPT_LINES)

    def __str__(self) -> str:
        return f"{self.rank.role} (rank {self.rank.rank})"


class LogStreams:
    """The logs of the pods of one workload. `tell` hears what can't be shown, and where lines may be missing.

    `since` (a time stamp) and `tail` (a number of lines) are where each log begins to be shown.
    """

    def __init__(
        self,
        client: ClusterClient,
        namespace: str,
        *,
        reporter: Reporter,
        tell: Callable[[str], None],
        since: str = "",
        tail: int | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._reporter = reporter
        self._tell = tell
        self._since = since
        self._tail = tail
        self._is_closed = self._is_denied = False
        self._logs: dict[str, _Log] = {}  # by pod uid
        self._tails: Tails | None = None
        self._thread = threading.Thread(target=self._read, name="logs", daemon=True)

    def follow(self, rank: RankStatus, container: str = "") -> None:
        """Show the rank's lines from its first on; a pod that is followed already is left alone."""
        self._add(rank, container, is_shown=True, since=self._since, tail=self._tail)

    def capture(self, rank: RankStatus, container: str = "") -> None:
        """Only keep the last lines of a rank that has ended, before somebody deletes its pod."""
        self._add(rank, container, is_shown=False, since="", tail=KEPT_LINES)
        self.has_ended(rank.pod_uid)

    def has_ended(self, pod_uid: str) -> None:
        """The pod has ended: what its log holds now is all."""
        log = self._logs.get(pod_uid)
        if log is not None and not log.container_ended and self._tails is not None:
            log.container_ended = True
            self._tails.finish(pod_uid)

    def last_lines(self, pod_uid: str, wait: float = 5.0) -> tuple[str, ...]:
        """What is kept of the pod's log, after waiting for a complete one."""
        log = self._logs.get(pod_uid)
        if log is None:
            return ()
        log.over.wait(wait)
        return tuple(log.kept)

    def close(self, wait: float = 5.0) -> None:
        """Wait for the logs of ended pods as long as lines come, and `wait` seconds more, then end all streams."""
        for log in self._logs.values():
            if log.container_ended and log.is_shown and not self._is_closed:
                self._await_rest(log, wait)
        self._is_closed = True
        if self._tails is not None:
            self._tails.close()
            self._thread.join(1.0)

    def _await_rest(self, log: _Log, wait: float) -> None:
        told = -1
        while log.lines > told and not log.over.is_set():
            told = log.lines
            log.over.wait(wait)
        if not log.over.is_set():
            self._tell(f"The end of the output of {log.rank.pod} does not come, so it isn't shown here.")

    def _add(self, rank: RankStatus, container: str, *, is_shown: bool, since: str, tail: int | None) -> None:
        if not rank.pod or rank.pod_uid in self._logs or self._is_closed:
            return
        if self._tails is None:
            self._tails = self._client.tails(self._namespace)
            self._thread.start()
        self._logs[rank.pod_uid] = _Log(rank, is_shown)
        self._tails.add(rank.pod_uid, rank.pod, container=container, since=since, tail=tail)

    def _read(self) -> None:
        assert self._tails is not None
        try:
            for piece in self._tails:
                self._take(self._logs[piece.key], piece)
        finally:  # also after a bug, whose traceback the thread prints: nobody waits for what does not come
            for log in list(self._logs.values()):
                log.over.set()

    def _take(self, log: _Log, piece: LogPiece) -> None:
        if isinstance(piece, LogLine):
            log.kept.append(piece.text)
            log.lines += 1
            if log.is_shown:
                self._reporter.log(log.rank.role, log.rank.rank, piece.stamp, piece.text)
        elif isinstance(piece, LogGap):
            if log.is_shown:
                self._tell(gap(str(log), piece))
        else:
            self._end(log, piece)

    def _end(self, log: _Log, end: LogEnd) -> None:
        """A pod that is gone has no log; a missing permission is the same for all ranks."""
        error: ClusterError | None = end.error
        if error is not None and not (isinstance(error, Forbidden) and self._is_denied) and not isinstance(error, NotFound):
            self._is_denied = isinstance(error, Forbidden)
            self._tell(f"The log of {log} can't be shown: {error}")
        log.over.set()


def gap(whose: str, piece: LogGap) -> str:
    """The mark where lines may be missing."""
    until = f"and {piece.before}" if piece.before else "and its end"
    return (
        f"Lines of {whose} may be missing here, of between {piece.after} {until}: "
        "the node began a new log file (it does that with long ones), or the container was started again."
    )
