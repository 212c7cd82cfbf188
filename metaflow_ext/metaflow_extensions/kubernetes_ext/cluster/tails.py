"""Follows any number of logs in one loop over their sockets.

A kubelet sends nothing, not even the head of an answer, before a container writes: whoever reads with a library that waits
needs a thread for each silent rank. So requests are sent by a few helpers, and the answers are read here, from whatever
socket has something. What the lines mean, and when a log is over, is decided in `logs`.
"""

from __future__ import annotations

import contextlib
import heapq
import inspect
import math
import queue
import selectors
import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any

from ..errors import ClusterError, Unavailable
from . import requests
from .access import Access
from .answers import Answer
from .closing import Closed, Closing
from .logs import Followed, order
from .protocol import LogEnd, LogPiece
from .retry import Backoff
from .streams import Stream
from .transport import Pool, Transport

_HELPERS = 4
_MOST_OPEN = 200  # macOS gives a process 256 files; what is beyond takes turns
_TURN_SECONDS = 3.0
_IDLE_SECONDS = 60.0
_PIECE = 2**16
_MOST_AT_ONCE = 2**18  # bytes of one log, before the others have their turn
_WAIT_FOR_OTHERS = 0.05  # seconds: lines that come together are told in the order of their times, and cost less
_FIRST_SILENCE = 15.0  # kubelets can miss that a log was rotated just when they opened it, and then wait for the old file
_WOULD_WAIT = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class _Log:
    """One followed log and the stream it is read from at the moment."""

    def __init__(self, followed: Followed, request: Callable[[str, int | None], requests.Request]) -> None:
        self.followed = followed
        self.make_request = request
        self.request = request("", None)
        self.due: float | None = 0.0  # when to open the next stream; None while one is open or being opened
        self.sock: Any = None
        self.answer = Answer()
        self.refusal = b""  # the body of an answer that is an error
        self.access: Access | None = None
        self.refused: Access | None = None  # credentials to renew first
        self.opened = 0
        self.opened_at = self.heard_at = 0.0


class LogTails(Stream[LogPiece]):
    """`protocol.Tails` over HTTP. A stream that says nothing for `silence` seconds is opened again, earlier while it is
    young, and after `last_silence` seconds once its container has ended."""

    def __init__(
        self,
        transport: Transport,
        namespace: str,
        closing: Closing,
        *,
        silence: float,
        last_silence: float,
        send_seconds: float,
        monotonic: Callable[[], float],
        backoff: Backoff,
    ) -> None:
        super().__init__(self._pieces(), closing)
        self._transport = transport
        self._namespace = namespace
        self._scope = closing
        self._silence = silence
        self._last_silence = last_silence
        self._send_seconds = send_seconds
        self._monotonic = monotonic
        self._backoff = backoff
        self._pool = Pool(closing, reads=False)
        self._logs: dict[str, _Log] = {}
        self._selector = selectors.DefaultSelector()
        self._full: list[_Log] = []  # have more than was read in the last round
        self._orders: queue.SimpleQueue[Callable[[], Iterable[LogPiece]]] = queue.SimpleQueue()
        self._to_send: queue.SimpleQueue[_Log | None] = queue.SimpleQueue()
        self._helpers = 0
        self._is_hung_up = False
        self._is_woken, self._bell = socket.socketpair()
        for end in (self._is_woken, self._bell):
            end.setblocking(False)
            closing.adopt(end)
        self._selector.register(self._is_woken, selectors.EVENT_READ)

    # ---- called from any thread

    def add(self, key: str, pod: str, *, container: str = "", since: str = "", tail: int | None = None) -> None:
        def request(start: str, lines: int | None) -> requests.Request:
            return requests.logs(self._namespace, pod, container, True, start, lines)

        followed = Followed(key, since=since, tail=tail, backoff=self._backoff)
        self._order(partial(self._add, _Log(followed, request)))

    def finish(self, key: str) -> None:
        self._order(partial(self._finish, key))

    def _order(self, order: Callable[[], Iterable[LogPiece]]) -> None:
        self._orders.put(order)
        with contextlib.suppress(OSError):  # rung often enough, or closed
            self._bell.send(b"!")

    def _help(self) -> None:
        """A helper's thread: connect and send, which may take its time."""
        while (log := self._to_send.get()) is not None:
            try:
                access, sock = self._transport.send(log.request, self._pool, self._send_seconds, log.refused)
            except Closed:
                return
            except ClusterError as error:
                self._order(partial(self._is_over, log, error))
            else:
                self._order(partial(self._listen, log, access, sock))
                if self._is_hung_up:
                    sock.close()

    # ---- the loop; all below is called from the iterating thread alone

    def _pieces(self) -> Generator[LogPiece, None, None]:
        try:
            while True:
                self._scope.check()
                while not self._orders.empty():
                    yield from self._orders.get()()
                self._send_what_is_due()
                yield from self._merged(self._ready())
                yield from self._give_up_the_silent()
        finally:
            self._hang_up()

    def _add(self, log: _Log) -> Iterable[LogPiece]:
        self._logs[log.followed.key] = log
        if self._helpers < min(_HELPERS, len(self._logs)):
            self._helpers += 1
            threading.Thread(target=self._help, name=f"logs-{self._helpers}", daemon=True).start()
        return ()

    def _finish(self, key: str) -> Iterable[LogPiece]:
        log = self._logs.get(key)
        if log is not None:
            log.followed.container_ended = True
            log.due = None if log.due is None else 0.0
        return ()

    def _send_what_is_due(self) -> None:
        now = self._monotonic()
        due = [log for log in self._logs.values() if log.due is not None and log.due <= now]
        room = _MOST_OPEN - sum(log.due is None for log in self._logs.values())
        for log in due[: max(0, room)]:
            log.due = None
            log.request = log.make_request(*log.followed.start())
            self._to_send.put(log)
        if len(due) > room:
            self._make_room(now)

    def _make_room(self, now: float) -> None:
        """The stream that is open for the longest time is resumed later."""
        open_ones = [log for log in self._logs.values() if log.sock is not None and now - log.opened_at >= _TURN_SECONDS]
        if open_ones:
            log = min(open_ones, key=lambda one: one.opened_at)
            self._drop(log)
            log.due = now
            self._logs[log.followed.key] = self._logs.pop(log.followed.key)  # behind all others

    def _listen(self, log: _Log, access: Access, sock: Any) -> Iterable[LogPiece]:
        sock.settimeout(0)
        log.sock, log.access, log.answer, log.refusal = sock, access, Answer(), b""
        log.opened += 1
        log.opened_at = log.heard_at = self._monotonic()
        self._selector.register(sock, selectors.EVENT_READ, log)
        self._full.append(log)  # what came with the handshake of TLS is seen by no selector
        return ()

    def _ready(self) -> list[_Log]:
        found = self._select(0.0 if self._full else self._idle_seconds())
        if found and not self._full:
            self._scope.sleep(_WAIT_FOR_OTHERS)
            found |= self._select(0.0)
        found |= dict.fromkeys(self._full)
        self._full = []
        return [log for log in found if log.sock is not None]

    def _select(self, seconds: float) -> dict[_Log, None]:
        ready = {key.data: None for key, _ in self._selector.select(seconds)}
        if ready.pop(None, 0) is None:
            with contextlib.suppress(OSError):
                self._is_woken.recv(2**10)
        return ready

    def _idle_seconds(self) -> float:
        """Until something must be done though nothing has come."""
        times = [self._deadline(log) for log in self._logs.values() if log.sock is not None]
        if due := [log.due for log in self._logs.values() if log.due is not None]:
            times.append(max(min(due), self._next_room()))
        return max(0.0, min(min(times) - self._monotonic(), _IDLE_SECONDS)) if times else _IDLE_SECONDS

    def _next_room(self) -> float:
        """When one more stream may be opened: now, or when the turn of an open one is over."""
        if sum(log.due is None for log in self._logs.values()) < _MOST_OPEN:
            return 0.0
        turns = [log.opened_at + _TURN_SECONDS for log in self._logs.values() if log.sock is not None]
        return min(turns, default=math.inf)

    def _merged(self, logs: list[_Log]) -> Iterator[LogPiece]:
        """What has come together, in the order of its times; each log's lines in their own."""
        return heapq.merge(*(list(self._read(log)) for log in logs), key=lambda piece: order(getattr(piece, "stamp", "")))

    def _read(self, log: _Log) -> Iterator[LogPiece]:
        data, error, has_ended = self._receive(log)
        try:
            body = log.answer.feed(data)
        except ValueError as broken:
            yield from self._is_over(log, Unavailable(f"What came as a log is no HTTP: {broken}"))
            return
        if page := self._transport.page(log.request, log.answer):
            yield from self._is_over(log, page)
            return
        if log.answer.status >= 400:
            log.refusal += body
        else:
            yield from log.followed.feed(body)
        if has_ended and (error or not log.answer.end()):
            yield from self._is_over(log, self._transport.broken(log.request, error or ConnectionError("it was closed")))
        elif log.answer.is_complete:
            yield from self._is_complete(log)

    def _receive(self, log: _Log) -> tuple[bytes, Exception | None, bool]:
        """What has come, why nothing more will come, and whether that is so."""
        data = bytearray()
        log.heard_at = self._monotonic()
        try:
            while len(data) < _MOST_AT_ONCE:
                piece = log.sock.recv(_PIECE)
                if not piece:
                    return bytes(data), None, True
                data += piece
        except _WOULD_WAIT:
            return bytes(data), None, False
        except OSError as error:
            return bytes(data), error, True
        self._full.append(log)
        return bytes(data), None, False

    def _is_complete(self, log: _Log) -> Iterator[LogPiece]:
        if log.answer.status < 400:
            yield from self._is_over(log, None)
        elif log.answer.status == 401 and log.refused is None and log.access is not None:
            self._drop(log)
            log.refused, log.due = log.access, 0.0
        else:
            assert log.access is not None
            yield from self._is_over(log, self._transport.refusal(log.request, log.answer, log.refusal, log.access))

    def _is_over(self, log: _Log, error: ClusterError | None) -> Iterator[LogPiece]:
        """The stream is; maybe the log is, too."""
        self._drop(log)
        key = log.followed.key
        try:
            delay = log.followed.end(error)
        except ClusterError as final:
            del self._logs[key]
            yield LogEnd(key, final)
            return
        if delay is not None:
            log.due = self._monotonic() + delay
            log.refused = None
            return
        yield from log.followed.rest()
        del self._logs[key]
        yield LogEnd(key)

    def _give_up_the_silent(self) -> Iterator[LogPiece]:
        now = self._monotonic()
        for log in list(self._logs.values()):
            if log.sock is not None and now >= self._deadline(log):
                yield from self._is_over(log, Unavailable("The log says nothing."))

    def _deadline(self, log: _Log) -> float:
        """When a stream that goes on saying nothing is given up."""
        young = _FIRST_SILENCE * 2 ** min(log.opened, 10)
        return log.heard_at + (self._last_silence if log.followed.container_ended else min(self._silence, young))

    def _drop(self, log: _Log) -> None:
        if log.sock is not None:
            self._selector.unregister(log.sock)
            log.sock.close()
            log.sock = None

    def _end_items(self) -> None:
        super()._end_items()
        if inspect.getgeneratorstate(self._items) == inspect.GEN_CLOSED:  # also where nothing was ever read
            self._hang_up()

    def _hang_up(self) -> None:
        self._is_hung_up = True
        while not self._orders.empty():
            order = self._orders.get()
            if isinstance(order, partial) and order.func == self._listen:
                order.args[-1].close()
        for log in self._logs.values():
            self._drop(log)
        for _ in range(self._helpers):
            self._to_send.put(None)
        self._selector.close()
        self._is_woken.close()
        self._bell.close()
