"""Reading one log: no line is lost and none comes twice, however often the connection breaks; or a mark says where."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.logs import Followed, parse, read
from metaflow_extensions.kubernetes_ext.cluster.protocol import LogGap, LogLine
from metaflow_extensions.kubernetes_ext.cluster.retry import Backoff
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Forbidden, NotFound, Rejected, Unavailable
from tests.unit.cluster.server import Answer, Server, refusal

PATH = "/api/v1/namespaces/ns/pods/p/log"
T = "2026-01-02T03:04:"
Connect = Callable[..., KubernetesClient]
NOT_STARTED = Rejected('container "c" in pod "p" is waiting to start: ContainerCreating', status=400)


def line(second: str, text: str) -> bytes:
    return f"{T}{second}Z {text}\n".encode()


def texts(pieces: Iterable[object]) -> list[str]:
    return [piece.text if isinstance(piece, LogLine) else f"gap {piece.after[17:]} {piece.before[17:]}" for piece in pieces]  # type: ignore[attr-defined]


def followed(**wanted: str) -> Followed:
    return Followed("p", backoff=Backoff(first=1.0, longest=30.0, draw=lambda: 0.0), **wanted)


def stream(log: Followed, *pieces: bytes) -> list[str]:
    log.start()
    return texts(item for piece in pieces for item in log.feed(piece))


# ---- one stream


def test_lines_come_when_they_are_whole() -> None:
    log = followed()
    log.start()
    whole = line("05.1", "one") + line("05.2", "two")
    assert texts(log.feed(whole[:10])) == []
    assert texts(log.feed(whole[10:-1])) == ["one"]
    assert texts(log.feed(b"\n")) == ["two"]


def test_a_last_line_without_an_end_comes_at_the_end() -> None:
    log = followed()
    assert stream(log, line("05.1", "one"), line("05.2", "last")[:-1]) == ["one"]
    assert texts(log.rest()) == ["last"]


def test_a_line_of_megabytes_is_one_line() -> None:
    pieces = [f"{T}05.1Z ".encode(), *[b"x" * 2**16] * 100, b"\n"]
    assert stream(followed(), *pieces) == ["x" * 2**16 * 100]


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        (b"2026-01-02T03:04:05.678901234Z text\n", ("2026-01-02T03:04:05.678901234Z", "text")),
        (b"2026-01-02T03:04:05Z \n", ("2026-01-02T03:04:05Z", "")),
        (b"2026-01-02T03:04:05.5+02:00 text\n", ("2026-01-02T03:04:05.5+02:00", "text")),
        (b"unable to retrieve container logs\n", ("", "unable to retrieve container logs")),
        (b"2026-01-02T03:04:05Z \xff\n", ("2026-01-02T03:04:05Z", "\ufffd")),
        (b"2026-01-02T03:04:05Z a\rb\x00\n", ("2026-01-02T03:04:05Z", "a\rb\x00")),
        (b"\n", ("", "")),
    ],
)
def test_lines_are_split_into_time_and_text(raw: bytes, parsed: tuple[str, str]) -> None:
    assert parse(raw) == parsed


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param([line("05.100000001", "a"), line("05.100000002", "b"), line("05.2", "c")], id="though the server cuts it"),
        pytest.param([b"2026-01-02T05:04:05.1+02:00 b\n", b"2026-01-02T05:04:05.3+02:00 c\n"], id="whatever the node's zone"),
    ],
)
def test_since_is_exact(raw: list[bytes]) -> None:
    assert stream(followed(since=f"{T}05.100000002Z"), *raw) == ["c"]


def test_what_the_kubelet_writes_in_place_of_a_log_is_no_output() -> None:
    raw = (
        line("05", "unable to retrieve container logs for my own reasons"),
        b"unable to retriece container logs for containerd://a\n",
    )
    assert stream(followed(), *raw) == ["unable to retrieve container logs for my own reasons"]


# ---- the next stream

FIRST = (line("05.1", "a"), line("06.1", "b"), line("06.2", "b"))


@pytest.mark.parametrize(
    ("again", "expected"),
    [
        pytest.param((*FIRST, line("06.3", "c")), ["c"], id="what was seen is skipped"),
        pytest.param(FIRST, [], id="nothing new"),
        pytest.param((*FIRST, line("06.2", "b")), ["b"], id="two equal lines of one moment are two lines"),
        pytest.param((*FIRST[:2], line("06.15", "late"), FIRST[2]), ["late"], id="a line that comes late with an older time"),
        pytest.param(FIRST[1:], [], id="rotated, and all that is gone was seen"),
        pytest.param((*FIRST[2:], line("07", "c")), ["c"], id="rotated, and nothing is missing"),
        pytest.param((line("07", "c"),), ["gap 06.2Z 07Z", "c"], id="rotated, and lines may be missing"),
        pytest.param((line("01", "x"),), ["gap 06.2Z 01Z", "x"], id="another log"),
    ],
)
def test_a_stream_goes_on_where_the_one_before_broke(again: tuple[bytes, ...], expected: list[str]) -> None:
    log = followed()
    assert log.start() == ("", None)
    assert texts(log.feed(b"".join(FIRST) + line("06.3", "c")[:-2])) == ["a", "b", "b"]
    assert log.end(Unavailable("broken")) == 1.0
    assert log.start() == (f"{T}05Z", None)
    assert texts(log.feed(b"".join(again))) == expected


def test_time_that_runs_backwards_is_marked() -> None:
    """A kubelet that starts a new file twice, while its reader is behind, has left out another one."""
    lines = [line("30.1", "a"), line("31", "b"), line("30.0", "a moment late"), line("29", "a"), line("30", "b")]
    assert stream(followed(), *lines) == ["a", "b", "a moment late", "gap 30.0Z 29Z", "a", "b"]


def test_what_is_asked_for_is_asked_for_until_something_came() -> None:
    log = Followed("p", since=f"{T}05Z", tail=3, backoff=Backoff())
    assert log.start() == (f"{T}05Z", 3)
    log.end(Unavailable("broken"))
    assert log.start() == (f"{T}05Z", 3)


# ---- the end


def test_a_stream_that_ends_before_its_container_is_followed_by_another() -> None:
    log = followed()
    for delay in (1.0, 2.0, 4.0, 5.0, 5.0):
        stream(log)
        assert log.end() == delay
    stream(log, line("05", "news"))
    assert log.end() == 1.0


def test_a_log_is_over_when_it_was_read_after_the_containers_end() -> None:
    log = followed()
    stream(log, line("05", "a"))
    log.container_ended = True
    assert log.end() is not None
    assert stream(log, line("05", "a"), line("06", "b")) == ["b"]
    assert log.end() is None
    assert texts(log.rest()) == []


def test_an_end_that_was_rotated_away_is_marked() -> None:
    log = followed()
    stream(log, line("05", "a"))
    log.end(Unavailable("broken"))
    log.container_ended = True
    assert stream(log) == []
    assert log.end() is None
    assert texts(log.rest()) == ["gap 05Z "]


@pytest.mark.parametrize(
    ("before", "expected"), [(Unavailable("broken"), ["gap 05Z "]), (None, [])], ids=["while it was read", "when it was read"]
)
def test_a_pod_that_goes_away_ends_its_log(before: ClusterError | None, expected: list[str]) -> None:
    log = followed()
    stream(log, line("05", "a"))
    log.end(before)
    log.start()
    assert log.end(NotFound('pods "p" not found', status=404)) is None
    assert texts(log.rest()) == expected


def test_a_container_that_has_not_started_is_waited_for_unless_it_has_ended() -> None:
    log = followed()
    log.start()
    assert log.end(NOT_STARTED) == 1.0
    log.container_ended = True
    log.start()
    with pytest.raises(Rejected):
        log.end(NOT_STARTED)


@pytest.mark.parametrize("error", [Forbidden("no", status=403), Rejected("which container", status=400)])
def test_what_is_for_ever_is_an_error(error: ClusterError) -> None:
    log = followed()
    log.start()
    with pytest.raises(type(error)):
        log.end(error)


class Kubelet:
    """A log that is cut to seconds on `sinceTime`, broken where the test says, and maybe rotated then."""

    def __init__(self, log: list[tuple[float, str]], breaks: list[tuple[int, int]]) -> None:
        self._log = [(datetime(2026, 1, 1) + timedelta(seconds=at), text) for at, text in log]
        self._breaks = list(breaks)
        self._begin = 0

    def open_at(self, since: str, tail: int | None) -> Generator[bytes, None, None]:
        first = datetime.fromisoformat(since.rstrip("Z")) if since else datetime.min
        lines = [f"{at.isoformat()}Z {text}\n".encode() for at, text in self._log[self._begin :] if at >= first]
        if not self._breaks:
            yield from lines
            return
        count, rotated = self._breaks.pop(0)
        self._begin = min(self._begin + rotated, len(self._log))
        yield from lines[:count]
        raise Unavailable("broken")


def everything(kubelet: Kubelet) -> list[LogLine | LogGap]:
    """As `read` does it, but with the patience of one who follows."""
    log, pieces = followed(), []
    while True:
        try:
            for piece in kubelet.open_at(*log.start()):
                pieces += log.feed(piece)
            return [*pieces, *log.rest()]
        except Unavailable as error:
            log.end(error)


STEPS = st.lists(st.tuples(st.sampled_from([0.0, 0.0000001, 0.3, 1.0, 7.0]), st.sampled_from("ab")), max_size=40)


def times(steps: list[tuple[float, str]]) -> list[tuple[float, str]]:
    at, log = 0.0, []
    for step, text in steps:
        at += step
        log.append((at, text))
    return log


@given(steps=STEPS, breaks=st.lists(st.integers(0, 12), max_size=20))
def test_any_log_over_any_breaks_comes_once_and_whole(steps: list[tuple[float, str]], breaks: list[int]) -> None:
    log = times(steps)
    assert texts(everything(Kubelet(log, [(count, 0) for count in breaks]))) == [text for _, text in log]


@given(steps=STEPS, breaks=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 15)), max_size=8))
def test_what_is_rotated_away_has_a_mark_in_its_place(steps: list[tuple[float, str]], breaks: list[tuple[int, int]]) -> None:
    log = times((step, f"{text}{number}") for number, (step, text) in enumerate(steps))  # type: ignore[arg-type]
    left = [text for _, text in log]
    is_after_gap = not left or not breaks  # before the first line nobody knows what there was
    for piece in everything(Kubelet(log, breaks)):
        if isinstance(piece, LogGap):
            is_after_gap = True
            continue
        skipped = left.index(piece.text)  # comes once, in its order
        assert not skipped or is_after_gap or left[0] == log[0][1], f"{left[:skipped]} are missing without a mark"
        left = left[skipped + 1 :]
        is_after_gap = False


# ---- over HTTP, without following


def test_a_log_is_read_with_time_stamps(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, Answer(200, lines=[line("05.1", "one"), line("06.2", ""), line("07.3", " two  words ")]))
    assert list(client.logs("ns", "p", container="c", tail=20)) == [
        ("p", f"{T}05.1Z", "one"),
        ("p", f"{T}06.2Z", ""),
        ("p", f"{T}07.3Z", " two  words "),
    ]
    assert server.seen[0].query == {"container": "c", "tailLines": "20", "timestamps": "true"}


@pytest.mark.parametrize("then", ["reset", "hang"])
def test_a_broken_log_goes_on_where_it_broke(server: Server, connect: Connect, then: str) -> None:
    again = [*FIRST, line("06.3", "b"), line("06.3", "c")[:-1]]
    server.on("GET", PATH, Answer(200, lines=list(FIRST), then=then), Answer(200, lines=again))
    assert texts(connect(read_seconds=0.2).logs("ns", "p")) == ["a", "b", "b", "b", "c"]


def test_a_log_that_breaks_without_end_is_an_error(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, Answer(200, lines=list(FIRST), then="reset"))
    with pytest.raises(Unavailable):
        list(client.logs("ns", "p"))


def test_a_log_that_can_not_be_read_is_an_error(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, refusal(404, "NotFound", 'pods "p" not found'))
    with pytest.raises(NotFound):
        list(client.logs("ns", "p"))


def test_read_ends_with_the_log() -> None:
    assert texts(read(followed(), Kubelet(times([(1.0, "a"), (0.5, "b")]), [(1, 0)]).open_at)) == ["a", "b"]
