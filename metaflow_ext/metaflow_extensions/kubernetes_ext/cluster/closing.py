"""Lets one thread end what another waits for: an open stream, an answer that does not come, a pause between two tries.

A thread that is blocked in `recv` is only woken when its socket is shut down, so every socket is registered here.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import weakref
from collections.abc import Callable
from typing import Any


class Closed(Exception):
    """Raised inside a stream or a request whose `Closing` was closed. Never leaves cluster/."""


class Closing:
    """A scope of sockets and pauses. Closing it closes its children as well; it never opens again."""

    def __init__(self, parent: Closing | None = None) -> None:
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._children: weakref.WeakSet[Closing] = weakref.WeakSet()
        self._callbacks: list[weakref.WeakMethod[Callable[[], None]]] = []
        self._closed = threading.Event()
        if parent is not None:
            parent._add(self)

    def check(self) -> None:
        if self._closed.is_set():
            raise Closed

    def sleep(self, seconds: float) -> None:
        """Raises Closed at once when closed meanwhile."""
        if self._closed.wait(seconds):
            raise Closed

    def adopt(self, sock: Any) -> None:
        """Shut `sock` down at `close()`. A TLS connection through a TLS proxy hides its socket one level deeper."""
        plain = sock if isinstance(sock, socket.socket) else getattr(sock, "socket", None)
        if not isinstance(plain, socket.socket):
            return
        with self._lock:
            self._sockets.add(plain)
            closed = self._closed.is_set()
        if closed:
            _shut(plain)

    def on_close(self, callback: Callable[[], None]) -> None:
        """A method that every `close` calls after the sockets are shut; it must bear being called again.

        It does not keep its object alive: a stream that is dropped without `close` must not live on in a cycle.
        """
        with self._lock:
            self._callbacks.append(weakref.WeakMethod(callback))

    def close(self) -> None:
        with self._lock:
            self._closed.set()
            sockets, children, callbacks = list(self._sockets), list(self._children), list(self._callbacks)
        for sock in sockets:
            _shut(sock)
        for child in children:
            child.close()
        for reference in callbacks:
            callback = reference()
            if callback is not None:
                callback()

    def _add(self, child: Closing) -> None:
        with self._lock:
            self._children.add(child)
            closed = self._closed.is_set()
        if closed:
            child.close()


def _shut(sock: socket.socket) -> None:
    # Not sock.shutdown: SSLSocket's forgets its TLS state under the feet of the thread that reads.
    with contextlib.suppress(OSError):
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
