"""Shows what ranks write, as they write it, and keeps each one's last lines.

One thread per followed rank, each blocked in a read: cheap for the ranks a person can follow. Everything else only knows
`LogStreams`, so that one loop over all sockets can take the threads' place.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable

from ..cluster.protocol import ClusterClient, Stream
from ..errors import ClusterError, Forbidden, NotFound
from ..status.model import RankStatus
from .clock import Clock
from .reporter import Reporter

KEPT_LINES = 30
_PAUSE_SECONDS = 5.0  # the log ends before the pod is known to have ended


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


class LogStreams:
    """Log streams of the pods of one workload. `tell` hears once why logs can't be shown."""

    def __init__(
        self, client: ClusterClient, namespace: str, *, reporter: Reporter, clock: Clock, tell: Callable[[str], None]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._reporter = reporter
        self._clock = clock
        self._tell = tell
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._is_denied = False
        self._threads: dict[str, threading.Thread] = {}  # by pod uid
        self._streams: dict[str, Stream[tuple[str, str]]] = {}
        self._ended: dict[str, threading.Event] = {}
        self._kept: dict[str, deque[str]] = {}
        self._shown: Counter[str] = Counter()  # lines, by pod uid

    def follow(self, rank: RankStatus, container: str = "") -> None:
        """Show the rank's lines from its first on; a pod that is followed already is left alone."""
        self._start(rank, container, self._follow)

    def capture(self, rank: RankStatus, container: str = "") -> None:
        """Only keep the rank's last lines, before somebody deletes its pod."""
        self._start(rank, container, self._capture)

    def has_ended(self, pod_uid: str) -> None:
        """The pod has ended: what its log holds now is all."""
        if pod_uid in self._ended:
            self._ended[pod_uid].set()

    def last_lines(self, pod_uid: str, wait: float = 5.0) -> tuple[str, ...]:
        """What is kept of the pod's log, after waiting for a complete one."""
        thread = self._threads.get(pod_uid)
        if thread is not None:
            thread.join(wait)
        return tuple(self._kept.get(pod_uid, ()))

    def close(self, wait: float = 5.0) -> None:
        """Wait for the logs of ended pods as long as lines come, and `wait` seconds more, then end all streams."""
        for pod_uid, thread in self._threads.items():
            if self._ended[pod_uid].is_set():
                self._await_rest(pod_uid, thread, wait)
        self._closed.set()
        with self._lock:
            streams = list(self._streams.values())
        for ended in self._ended.values():
            ended.set()
        for stream in streams:
            stream.close()
        for thread in self._threads.values():
            thread.join(1.0)

    def _await_rest(self, pod_uid: str, thread: threading.Thread, wait: float) -> None:
        told = -1
        while thread.is_alive() and self._shown[pod_uid] > told:
            told = self._shown[pod_uid]
            thread.join(wait)
        if thread.is_alive():
            self._tell(f"The end of the output of {thread.name.removeprefix('logs-')} does not come, so it isn't shown here.")

    def _start(self, rank: RankStatus, container: str, target: Callable[[RankStatus, str], None]) -> None:
        if not rank.pod or rank.pod_uid in self._threads or self._closed.is_set():
            return
        thread = threading.Thread(target=target, args=(rank, container), name=f"logs-{rank.pod}", daemon=True)
        self._kept[rank.pod_uid] = deque(maxlen=KEPT_LINES)
        self._ended[rank.pod_uid] = threading.Event()
        self._threads[rank.pod_uid] = thread
        thread.start()

    def _follow(self, rank: RankStatus, container: str) -> None:
        """Streams may end too early (a rotated log, a proxy): the log is over once it was read after the pod's end."""
        ended, since, is_last = self._ended[rank.pod_uid], "", False
        try:
            while not self._closed.is_set():
                is_last = ended.is_set() and bool(since)
                follow = not is_last
                stream = self._client.logs(self._namespace, rank.pod, container=container, follow=follow, since=since)
                self._open(rank, stream)
                for stamp, line in stream:
                    since = stamp or since
                    self._kept[rank.pod_uid].append(line)
                    self._shown[rank.pod_uid] += 1
                    self._reporter.log(rank.role, rank.rank, stamp, line)
                if is_last or (ended.is_set() and not since):
                    return
                self._clock.wait(ended, _PAUSE_SECONDS)
        except ClusterError as error:
            self._failed(rank, error)

    def _capture(self, rank: RankStatus, container: str) -> None:
        try:
            stream = self._client.logs(self._namespace, rank.pod, container=container, tail=KEPT_LINES)
            self._open(rank, stream)
            self._kept[rank.pod_uid].extend(line for _, line in stream)
        except ClusterError as error:
            self._failed(rank, error)

    def _open(self, rank: RankStatus, stream: Stream[tuple[str, str]]) -> None:
        with self._lock:
            self._streams[rank.pod_uid] = stream
        if self._closed.is_set():
            stream.close()

    def _failed(self, rank: RankStatus, error: ClusterError) -> None:
        """A pod that is gone has no log; a missing permission is the same for all ranks."""
        if self._closed.is_set() or isinstance(error, NotFound):
            return
        with self._lock:
            was_denied, self._is_denied = self._is_denied, self._is_denied or isinstance(error, Forbidden)
        if not (was_denied and isinstance(error, Forbidden)):
            self._tell(f"The log of {rank.role} (rank {rank.rank}) can't be shown: {error}")
