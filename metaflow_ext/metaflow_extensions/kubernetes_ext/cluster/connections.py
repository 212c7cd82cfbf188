"""Connections to one API server: urllib3 pools with this package's settings. No decisions about errors or retries."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from ..errors import ClusterError
from .access import Access
from .closing import Closing

CONNECT_SECONDS = 10.0
_CHUNK = 2**16


class Unread(urllib3.HTTPResponse):
    """Stands for an answer that nobody has read yet, and takes the socket that it will come through."""

    def __init__(self, connection: HTTPConnection) -> None:
        super().__init__(preload_content=False)
        self.sock: Any = connection.sock
        connection.sock = None


class Connections:
    """A pool whose sockets all belong to `closing`. One per stream, and one for all short requests.

    With `reads` false it only sends: `open` returns an `Unread` as soon as that is done.
    """

    def __init__(self, access: Access, context: ssl.SSLContext | None, closing: Closing, reads: bool = True) -> None:
        self._manager = _manager(access, context)
        self._manager.pool_classes_by_scheme = _pool_classes(closing, access.verify, reads)
        self._host = access.host

    def open(
        self, method: str, target: str, *, headers: Mapping[str, str], body: bytes | None, read_timeout: float
    ) -> urllib3.BaseHTTPResponse:
        """Sends once and returns when the headers have come; the body is not read. Raises what urllib3 raises."""
        return self._manager.urlopen(
            method,
            self._host + target,
            redirect=False,
            retries=False,
            preload_content=False,
            body=body,
            headers=dict(headers),
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=read_timeout),
        )

    def clear(self) -> None:
        self._manager.clear()


def lines(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body's lines as they come, each with its end of line; the last may have none."""
    rest = b""
    for piece in _pieces(response):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest


def _pieces(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    if getattr(response, "chunked", False):
        yield from response.stream(_CHUNK)
        return
    while piece := response.read1(_CHUNK):  # `read` would wait for a whole chunk
        yield piece


def ssl_context(access: Access) -> ssl.SSLContext | None:
    """TLS as the configuration wants it; None for http. ClusterError for files that can't be used.

    A plain context: Python 3.13's stricter defaults refuse the certificate authorities of many clusters.
    """
    if not access.host.startswith("https:"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if not access.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif access.ca_data or access.ca_file:
            context.load_verify_locations(cafile=access.ca_file, cadata=access.ca_data.decode() if access.ca_data else None)
        else:
            context.load_default_certs()
        with _as_file(access.cert_data, access.cert_file) as cert, _as_file(access.key_data, access.key_file) as key:
            if cert:
                context.load_cert_chain(cert, key)
    except (OSError, ValueError) as error:
        raise ClusterError(f"The certificates of {access.source} can't be used: {error}") from error
    return context


@contextlib.contextmanager
def _as_file(data: bytes | None, path: str | None) -> Iterator[str | None]:
    """ssl reads client certificates from files only; a file of ours lives no longer than that takes."""
    if data is None:
        yield path
        return
    handle, name = tempfile.mkstemp()  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        yield name
    finally:
        os.unlink(name)


def _manager(access: Access, context: ssl.SSLContext | None) -> urllib3.PoolManager:
    settings: dict[str, Any] = {"maxsize": 8, "socket_options": _socket_options()}
    if context is not None:
        settings["ssl_context"] = context
        settings["cert_reqs"] = "CERT_REQUIRED" if access.verify else "CERT_NONE"
        if not access.verify:
            settings["assert_hostname"] = False
        if access.server_name:
            settings["server_hostname"] = access.server_name
    if not access.proxy:
        return urllib3.PoolManager(**settings)
    if access.proxy.startswith("socks"):
        try:
            from urllib3.contrib.socks import SOCKSProxyManager
        except ImportError as error:
            raise ClusterError(f"The proxy {access.proxy} of {access.source} needs the Python package PySocks.") from error
        return SOCKSProxyManager(access.proxy, **settings)
    return urllib3.ProxyManager(access.proxy, **settings)


def _pool_classes(closing: Closing, verify: bool, reads: bool) -> dict[str, Any]:
    """urllib3 takes classes, not factories: the scope is an attribute of a class made for it."""

    class Http(HTTPConnection):
        def connect(self) -> None:
            closing.check()
            super().connect()
            closing.adopt(self.sock)

        def getresponse(self) -> Any:
            return super().getresponse() if reads else Unread(self)

    class Https(HTTPSConnection):
        def connect(self) -> None:
            closing.check()
            super().connect()
            closing.adopt(self.sock)
            if not verify:
                self.is_verified = True  # else urllib3 warns at every request of what the kubeconfig asks for

        def getresponse(self) -> Any:
            return super().getresponse() if reads else Unread(self)

    class HttpPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Http

    class HttpsPool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Https

    return {"http": HttpPool, "https": HttpsPool}


def _socket_options() -> list[tuple[int, int, int | bytes]]:
    """Notice within a minute or two that the other side is gone, also while only waiting for it."""
    wanted = {"TCP_KEEPIDLE": 30, "TCP_KEEPALIVE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 60_000}
    options = [*HTTPConnection.default_socket_options, (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    return options + [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in wanted.items() if hasattr(socket, name)
    ]
