"""A proxy between a client and an API server that makes requests go wrong as a schedule says. A test tool.

What reaches the server goes with the client's own words and credentials; only where the server wants TLS does the proxy speak it.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3
import yaml

from metaflow_extensions.kubernetes_ext.cluster.access import Access
from metaflow_extensions.kubernetes_ext.cluster.closing import Closing
from metaflow_extensions.kubernetes_ext.cluster.connections import Connections, ssl_context
from tests.faults.schedule import Fault

_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/v\w+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[a-z]+))?$"
)
_VERBS = {"POST": "create", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
_REASONS = {
    "401": "Unauthorized", "403": "Forbidden", "409": "Conflict", "410": "Expired", "429": "TooManyRequests",
    "500": "InternalError", "502": "", "503": "ServiceUnavailable", "504": "Timeout",
}  # fmt: skip
_HOP = {"transfer-encoding", "connection", "content-length", "keep-alive"}


@dataclass
class Seen:
    """A request that came: its target and number, the fault that met it, and the status that the server gave (0: not asked)."""

    target: str
    number: int
    fault: str
    status: int = 0


@dataclass
class Proxy:
    """Serves on a loopback port from `start` to `stop`. `seen` is what came through, in order."""

    upstream: Access
    faults: Sequence[Fault]
    on_request: Callable[[str], bool] = lambda target: True  # whether it is to reach the server
    on_answer: Callable[[str], None] = lambda target: None  # the server has done it, and the client does not know yet
    seen: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scope = Closing()
        self.connections = Connections(self.upstream, ssl_context(self.upstream), self.scope)
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._out_until = 0.0
        self.is_faulty = True
        proxy = self

        class Handler(_Handler):
            owner = proxy

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.cut_all()
        self.scope.close()

    def kubeconfig(self, original: Path, path: Path) -> None:
        """A copy of `original` whose servers are this proxy."""
        config = yaml.safe_load(original.read_text(encoding="utf-8"))
        for each in config["clusters"]:
            each["cluster"] = {"server": self.url}
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    def take(self, target: str) -> tuple[Seen, Fault | None]:
        """Counts a request and says what is to happen to it."""
        with self._lock:
            self._counts[target] += 1
            number = self._counts[target]
            met = next((fault for fault in self.faults if fault.meets(target, number)), None) if self.is_faulty else None
            seen = Seen(target, number, met.kind if met else "")
            self.seen.append(seen)
        return seen, met

    def meet_next(self, kind: str, target: str) -> None:
        """The next request to `target` meets this fault."""
        with self._lock:
            self.faults = (*self.faults, Fault(kind, target, self._counts[target] + 1))

    @property
    def is_out(self) -> bool:
        return time.monotonic() < self._out_until

    def outage(self, seconds: float) -> None:
        self._out_until = time.monotonic() + seconds
        self.cut_all()

    def cut_all(self) -> None:
        with self._lock:
            connections = list(self._open)
        for connection in connections:  # their handlers may wait for the server, so that closing would not reach the client
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def tracked(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            self._open.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._open.discard(connection)


def reset(connection: socket.socket) -> None:
    """End it with RST, not FIN. A thread that waits for it wakes up."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        connection.close()


def target_of(method: str, target: str) -> str:
    """ "watch pods" out of a request line; of unknown paths "get other"."""
    parts = urlsplit(target)
    found = _PATH.search(parts.path)
    if found is None:
        return "get other"
    query = parse_qs(parts.query)
    resource = f"{found['plural']}/{found['sub']}" if found["sub"] else found["plural"]
    if method != "GET":
        return f"{_VERBS.get(method, method.lower())} {resource}{' (dry run)' if 'dryRun' in query else ''}"
    if found["name"]:
        return f"get {resource}"
    return f"{'watch' if query.get('watch') == ['true'] else 'list'} {resource}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, and connections that we cut, are the point of it."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: Proxy

    def handle(self) -> None:
        if self.owner.is_out:
            reset(self.connection)
            return
        with self.owner.tracked(self.connection):
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = target_of(self.command, self.path)
        if self.owner.is_out:
            self._reset()
            return
        if not self.owner.on_request(target):
            self._reset()
            return
        seen, fault = self.owner.take(target)
        kind = fault.kind if fault else ""
        self.close_connection = fault is not None
        if fault is None:
            self._forward(body, seen)
        elif kind in ("refused", "lost request"):
            self._reset()
        elif kind == "outage":
            self.owner.outage(fault.seconds)
            self._reset()
        elif kind == "a page":
            self._answer(200, b"<html><body>Please log in to this network.</body></html>", {"Content-Type": "text/html"})
        elif kind in _REASONS:
            self._refuse(fault)
        elif kind == "slow":
            time.sleep(fault.seconds)
            self._forward(body, seen)
        else:
            self._forward(body, seen, fault)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any

    def _reset(self) -> None:
        self.close_connection = True
        reset(self.connection)

    def _refuse(self, fault: Fault) -> None:
        code = int(fault.kind)
        status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": f"fault injected: {fault.kind}", "reason": _REASONS[fault.kind], "code": code,
        }  # fmt: skip
        headers = {"Content-Type": "application/json"}
        if fault.retry_after:
            headers["Retry-After"] = str(fault.retry_after)
        body = json.dumps(status).encode() if _REASONS[fault.kind] else b"<html>502 Bad Gateway</html>"
        self._answer(code, body, headers)

    def _answer(self, code: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _forward(self, body: bytes, seen: Seen, fault: Fault | None = None) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in {*_HOP, "host"}}
        try:
            answer = self.owner.connections.open(
                self.command, self.path, headers=headers, body=body or None, read_timeout=3600.0
            )
        except (urllib3.exceptions.HTTPError, OSError):
            self._reset()
            return
        seen.status = answer.status
        self.owner.on_answer(seen.target)
        with contextlib.closing(answer):
            is_stream = bool(getattr(answer, "chunked", False))
            if fault is not None and (fault.kind == "lost answer" or (fault.kind == "half-open" and not is_stream)):
                _wait(fault.seconds, self.owner)
                self._reset()
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            try:
                if is_stream:
                    self._stream(answer, fault)
                else:
                    self._whole(answer.data, fault)
            except (urllib3.exceptions.HTTPError, OSError):
                self._reset()

    def _whole(self, data: bytes, fault: Fault | None) -> None:
        is_cut = fault is not None and fault.kind == "cut answer"
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if is_cut else data)
        if is_cut:
            self._reset()

    def _stream(self, answer: urllib3.BaseHTTPResponse, fault: Fault | None) -> None:
        """Chunk by chunk as they come; cut in the middle of the first, or silent after it."""
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        kind = fault.kind if fault else ""
        for chunk in answer.stream():
            self._chunk(chunk[: len(chunk) // 2] if kind == "cut answer" else chunk)
            if fault is not None:
                _wait(fault.seconds, self.owner)
                self._reset()
                return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()


def _wait(seconds: float, owner: Proxy) -> None:
    """An outage ends it: there is no connection left to be silent on."""
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at and not owner.is_out:
        time.sleep(0.05)
