"""Reads an HTTP/1.1 answer from whatever pieces it comes in: pure, so that one loop can read many sockets, none of which it
waits for. Everything else in this package leaves that to urllib3, which waits."""

from __future__ import annotations

import io
from collections.abc import Mapping
from http.client import HTTPException, parse_headers

from urllib3 import HTTPHeaderDict

_LONGEST_LINE = 2**16


class Answer:
    """`status` is 0 until the head has come. `is_complete`: nothing more belongs to it."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.is_complete = False
        self._buffer = b""
        self._at = 0  # what is before is read
        self._left: int | None = 0  # bytes of this chunk, or of the body; None: until the connection ends
        self._is_chunked = False
        self._is_in_trailer = False

    def feed(self, data: bytes) -> bytes:
        """What the data brings of the body. ValueError for what is no HTTP."""
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        pieces = []
        while not self.is_complete and (piece := self._next()) is not None:
            pieces.append(piece)
        return b"".join(pieces)

    def end(self) -> bool:
        """The connection has ended; whether the answer was complete by then."""
        self.is_complete = self.is_complete or (self.status != 0 and self._left is None)
        return self.is_complete

    def _next(self) -> bytes | None:
        """The next piece of the body, maybe an empty one; None where more must come first."""
        if not self.status:
            return self._read_head()
        if self._left == 0:
            return self._read_size()
        end = len(self._buffer) if self._left is None else min(len(self._buffer), self._at + self._left)
        piece = self._buffer[self._at : end]
        self._at = end
        if self._left is not None:
            self._left -= len(piece)
            self.is_complete = not self._left and not self._is_chunked
        return piece or None

    def _read_head(self) -> bytes | None:
        end = self._buffer.find(b"\r\n\r\n", self._at)
        if end < 0:
            if len(self._buffer) > _LONGEST_LINE:
                raise ValueError("the head of the answer does not end")
            return None
        first, _, fields = self._buffer[self._at : end + 4].partition(b"\r\n")
        self._at = end + 4
        version, _, rest = first.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError(f"no answer of HTTP/1: {first[:80]!r}")
        try:
            headers, status = HTTPHeaderDict(parse_headers(io.BytesIO(fields)).items()), int(rest[:3])
        except HTTPException as error:
            raise ValueError(f"a head that can't be read: {error}") from error
        if status >= 200:  # else something provisional comes before
            self.status, self.headers = status, headers
            self._is_chunked = "chunked" in (headers.get("Transfer-Encoding") or "").lower()
            length = headers.get("Content-Length")
            self._left = 0 if self._is_chunked else None if length is None else int(length)
            self.is_complete = status == 204 or (self._left == 0 and not self._is_chunked)
        return b""

    def _read_size(self) -> bytes | None:
        """A chunk's size; or the end of its line, or what comes after the last one."""
        end = self._buffer.find(b"\n", self._at)
        if end < 0:
            if len(self._buffer) - self._at > _LONGEST_LINE:
                raise ValueError("a chunk without a size")
            return None
        line = self._buffer[self._at : end].strip()
        self._at = end + 1
        if self._is_in_trailer:
            self.is_complete = not line
        elif line:
            self._left = int(line.partition(b";")[0], 16)
            self._is_in_trailer = not self._left
        return b""
