"""A proxy in front of an API server that resets every connection after some bytes, now and then in the middle of a line."""

from __future__ import annotations

import contextlib
import selectors
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from metaflow_extensions.kubernetes_ext.cluster.access import Access

_PIECE = 2**12


class Cutting(socketserver.ThreadingTCPServer):
    """`cuts` counts the connections that were reset; each one after another number of bytes around `size`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, target: tuple[str, int], size: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.cuts = 0
        self._size = size
        self._made = 0

    def limit(self) -> int:
        self._made += 1
        return self._size // 2 + self._made * 7919 % self._size


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Cutting)
        left = self.server.limit()
        with contextlib.suppress(OSError), socket.create_connection(self.server.target) as upstream:
            selector = selectors.DefaultSelector()
            for one, other in ((self.request, upstream), (upstream, self.request)):
                selector.register(one, selectors.EVENT_READ, other)
            while True:
                for key, _ in selector.select():
                    piece = key.fileobj.recv(_PIECE)  # type: ignore[union-attr]
                    if not piece:
                        return
                    left -= len(piece) if key.fileobj is upstream else 0
                    key.data.sendall(piece if left >= 0 else piece[:left])
                    if left <= 0:
                        self.server.cuts += 1
                        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        return


@contextmanager
def cutting(access: Access, size: int) -> Iterator[tuple[Cutting, Access]]:
    """The proxy, and the way through it."""
    url = urlsplit(access.host)
    server = Cutting((str(url.hostname), url.port or 443), size)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server, replace(access, host=f"{url.scheme}://127.0.0.1:{server.server_address[1]}{url.path}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
