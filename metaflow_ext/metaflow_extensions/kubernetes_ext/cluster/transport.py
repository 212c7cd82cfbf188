"""Sends one `Request` and gives its answer or our error: credentials, connections and failures meet here. No retries but
the one after renewing refused credentials."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Generator
from typing import Any, NoReturn

import urllib3

from ..errors import ClusterError, Unavailable
from . import failures
from .access import Access, Login
from .answers import Answer
from .closing import Closing
from .connections import Connections, Unread, lines, ssl_context
from .requests import Request

_HEADERS = {"Accept": "application/json", "User-Agent": "metaflow-kubernetes-ext"}
_BROKEN = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError)


class Pool:
    """Connections that belong to one scope, made anew when the way to the server changes."""

    def __init__(self, closing: Closing, reads: bool = True) -> None:
        self.closing = closing
        self._reads = reads
        self._lock = threading.Lock()
        self._made: tuple[Access, Connections] | None = None
        closing.on_close(self._clear)

    def of(self, access: Access) -> Connections:
        with self._lock:
            if self._made is None or self._made[0].transport != access.transport:
                self._made = (access, Connections(access, ssl_context(access), self.closing, self._reads))
            return self._made[1]

    def _clear(self) -> None:
        with self._lock:
            if self._made is not None:
                self._made[1].clear()


class Transport:
    """All methods raise ClusterError, or Closed when the pool's scope was closed meanwhile."""

    def __init__(self, login: Login, on_warning: Callable[[str], None] = lambda text: None) -> None:
        self._login = login
        self._on_warning = on_warning

    def exchange(self, request: Request, pool: Pool, read_timeout: float) -> dict[str, Any]:
        """The answer's JSON object."""
        response = self.open(request, pool, read_timeout)
        try:
            answer = json.loads(response.data)
        except _BROKEN as error:
            self._raise_broken(request, error, pool)
        except ValueError as error:
            raise Unavailable(
                f"The API server's answer to {request.verb} {request.resource.plural} is cut, or not JSON."
            ) from error
        return answer if isinstance(answer, dict) else {}

    def lines(self, request: Request, pool: Pool, read_timeout: float) -> Generator[bytes, None, None]:
        """The answer's lines as they come. The request is sent at once, not when the first line is asked for."""
        return self._read_lines(request, self.open(request, pool, read_timeout), pool)

    def open(self, request: Request, pool: Pool, read_timeout: float) -> urllib3.BaseHTTPResponse:
        """The answer with its body unread."""
        access = self._login.current()
        response = self._send(request, access, pool, read_timeout)
        if response.status == 401:
            response.close()
            access = self._login.renew(access)
            response = self._send(request, access, pool, read_timeout)
        if response.status < 400:
            if page := failures.of_page(request, response.headers):
                response.close()
                raise page
            for text in failures.warnings(response.headers.get("Warning", "")):
                self._on_warning(text)
            return response
        try:
            data = response.data
        except _BROKEN as error:
            self._raise_broken(request, error, pool)
        raise failures.of_answer(request, response.status, response.headers, data, access.source)

    def send(self, request: Request, pool: Pool, read_timeout: float, refused: Access | None = None) -> tuple[Access, Any]:
        """Sends by a pool that does not read, and gives the socket the answer will come through, with the credentials
        that were used. `refused` ones are renewed first."""
        access = self._login.current() if refused is None else self._login.renew(refused)
        response = self._send(request, access, pool, read_timeout)
        assert isinstance(response, Unread)
        return access, response.sock

    @staticmethod
    def refusal(request: Request, answer: Answer, body: bytes, access: Access) -> ClusterError:
        return failures.of_answer(request, answer.status, answer.headers, body, access.source)

    @staticmethod
    def page(request: Request, answer: Answer) -> ClusterError | None:
        return failures.of_page(request, answer.headers) if 0 < answer.status < 400 else None

    def broken(self, request: Request, error: Exception) -> ClusterError:
        access = self._login.access
        return failures.of_exception(request, error, access.host, access.source)

    def _send(self, request: Request, access: Access, pool: Pool, read_timeout: float) -> urllib3.BaseHTTPResponse:
        pool.closing.check()
        headers = dict(_HEADERS)
        if access.authorization:
            headers["Authorization"] = access.authorization
        body = request.payload
        if body is not None:
            headers["Content-Type"] = request.content_type
        connections = pool.of(access)
        try:
            return connections.open(request.method, request.target, headers=headers, body=body, read_timeout=read_timeout)
        except _BROKEN as error:
            self._raise_broken(request, error, pool)

    def _read_lines(self, request: Request, response: urllib3.BaseHTTPResponse, pool: Pool) -> Generator[bytes, None, None]:
        try:
            yield from lines(response)
        except _BROKEN as error:
            self._raise_broken(request, error, pool)
        finally:
            response.close()
        pool.closing.check()  # a socket that we shut down can look like the end of the answer

    def _raise_broken(self, request: Request, error: Exception, pool: Pool) -> NoReturn:
        pool.closing.check()
        raise self.broken(request, error) from error
