"""A small real HTTP server for tests: each path answers with a script, also by breaking the connection or by silence."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from metaflow_extensions.kubernetes_ext.cluster.access import Access


@dataclass(frozen=True)
class Seen:
    """A request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any


@dataclass
class Answer:
    """`then` is what follows the body: end, reset (the connection), hang (silence until the server stops).

    `lines` are sent in chunks, one each; `body` whole. `cut` sends so many bytes of the body and then does `then`.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    lines: list[Any] | None = None
    then: str = "end"
    cut: int | None = None
    chunked: bool = True


def status_error(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    """A Kubernetes Status."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}
    return {**status, "details": details} if details else status


def refusal(code: int, reason: str = "", message: str = "no", headers: dict[str, str] | None = None, **details: Any) -> Answer:
    return Answer(code, status_error(code, reason, message, **details), headers or {})


def reset() -> Answer:
    """The connection is reset without an answer."""
    return Answer(status=0, then="reset")


def silence() -> Answer:
    """No answer at all."""
    return Answer(status=0, then="hang")


class Server:
    """`on` gives a path the answers of its next requests; the last one stays."""

    def __init__(self, context: ssl.SSLContext | None = None, port: int = 0, is_started: bool = True) -> None:
        self.seen: list[Seen] = []
        self._answers: dict[tuple[str, str], list[Answer | Callable[[Seen], Answer]]] = {}
        self._stopped = threading.Event()
        self._http = _Server(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        self._http.block_on_close = False
        if context:
            self._http.socket = context.wrap_socket(self._http.socket, server_side=True)
        self._scheme = "https" if context else "http"
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        if is_started:
            self._thread.start()

    def start(self) -> None:
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def access(self, **fields: Any) -> Access:
        return Access(**{"host": self.url, "source": "the test's server", **fields})

    def on(self, method: str, path: str, *answers: Answer | Callable[[Seen], Answer]) -> None:
        self._answers[method, path] = list(answers)

    def count(self, method: str, path: str = "", **query: str) -> int:
        return sum(
            1
            for one in self.seen
            if one.method == method and (not path or one.path == path) and query.items() <= one.query.items()
        )

    def stop(self) -> None:
        self._stopped.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, seen: Seen) -> Answer:
        self.seen.append(seen)
        answers = self._answers.get((seen.method, seen.path))
        if not answers:
            return Answer(404, b"404 page not found\n", {"Content-Type": "text/plain"})
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return answer(seen) if callable(answer) else answer

    def hang(self) -> None:
        self._stopped.wait(30)


class _Server(ThreadingHTTPServer):
    request_queue_size = 128


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            answer = server.answer(Seen(self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers), body))
            try:
                if answer.status:
                    self._send(answer)
                self._then(answer)
            except OSError:
                self.close_connection = True

        do_GET = do_POST = do_DELETE = do_PATCH = handle_any

        def _send(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.lines is not None:
                self._send_lines(answer)
                return
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data if answer.cut is None else data[: answer.cut])

        def _send_lines(self, answer: Answer) -> None:
            self.send_header("Transfer-Encoding" if answer.chunked else "Connection", "chunked" if answer.chunked else "close")
            self.end_headers()
            self.wfile.flush()
            for line in answer.lines or ():
                data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if answer.chunked else data)
                self.wfile.flush()
            if answer.then == "end" and answer.chunked:
                self.wfile.write(b"0\r\n\r\n")

        def _then(self, answer: Answer) -> None:
            self.wfile.flush()
            if answer.then == "hang":
                server.hang()
            if answer.then != "end" or (answer.lines is not None and not answer.chunked):
                self.close_connection = True
            if answer.then == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return Handler
