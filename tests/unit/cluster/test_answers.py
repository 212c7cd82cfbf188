"""HTTP answers in any pieces."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.cluster.answers import Answer

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "body", "is_complete"),
    [
        pytest.param(CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", b"abc0123456789", True, id="chunks"),
        pytest.param(CHUNKED + b"1\r\na\r\n0\r\nTrailer: x\r\n\r\n", b"a", True, id="chunks and a trailer"),
        pytest.param(CHUNKED + b"1\r\na\r\n", b"a", False, id="chunks without an end"),
        pytest.param(CHUNKED + b"5\r\nab", b"ab", False, id="half a chunk"),
        pytest.param(CHUNKED + b"0\r\n\r\n", b"", True, id="no chunks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", True, id="a length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", b"abc", False, id="a length that does not come"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True, id="length 0"),
        pytest.param(b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc", True, id="until the connection ends"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", b"a", True, id="continue"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", b"", True, id="no content"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", b"", False, id="half a head"),
        pytest.param(b"", b"", False, id="nothing"),
    ],
)  # fmt: skip
@given(cuts=st.lists(st.integers(0, 120), max_size=8))
def test_any_pieces_make_the_same_answer(raw: bytes, body: bytes, is_complete: bool, cuts: list[int]) -> None:
    answer = Answer()
    places = sorted({0, *cuts, len(raw)})
    pieces = [raw[start:end] for start, end in itertools.pairwise(places)]
    assert b"".join(map(answer.feed, pieces)) == body
    assert answer.end() is is_complete


def test_status_and_headers_are_read() -> None:
    answer = Answer()
    assert answer.feed(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}") == b"{}"
    assert (answer.status, answer.headers.get("retry-after"), answer.is_complete) == (429, "7", True)


@pytest.mark.parametrize(
    "raw",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 what\r\n\r\n",
        b"x" * 70_000,
        CHUNKED + b"size\r\n",
        CHUNKED + b"1" * 70_000,
    ],
)
def test_what_is_no_http_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        Answer().feed(raw)
