"""Following logs: no line is lost and none comes twice, however often the connection breaks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.logs import follow, once, parse
from metaflow_extensions.kubernetes_ext.cluster.retry import Backoff
from metaflow_extensions.kubernetes_ext.errors import Forbidden, NotFound, Rejected, Unavailable
from tests.fakes import FakeClock
from tests.unit.cluster.server import Answer, Server, refusal, silence

PATH = "/api/v1/namespaces/ns/pods/p/log"
T = "2026-01-02T03:04:"
Connect = Callable[..., KubernetesClient]


def line(second: str, text: str) -> bytes:
    return f"{T}{second}Z {text}\n".encode()


def texts(lines: list[tuple[str, str]]) -> list[str]:
    return [text for _, text in lines]


def since(server: Server) -> list[str | None]:
    return [one.query.get("sinceTime") for one in server.seen]


END = Answer(200, lines=[])


def test_a_log_is_read_with_time_stamps(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, Answer(200, lines=[line("05.1", "one"), line("06.2", ""), line("07.3", " two  words ")]))
    assert list(client.logs("ns", "p", container="c", tail=20)) == [
        (f"{T}05.1Z", "one"),
        (f"{T}06.2Z", ""),
        (f"{T}07.3Z", " two  words "),
    ]
    assert server.seen[0].query == {"container": "c", "tailLines": "20", "timestamps": "true"}


def test_a_followed_log_ends_when_nothing_is_left(server: Server, client: KubernetesClient) -> None:
    server.on(
        "GET", PATH, Answer(200, lines=[line("05.1", "one"), line("07.5", "two")]), Answer(200, lines=[line("07.5", "two")])
    )
    assert texts(list(client.logs("ns", "p", follow=True))) == ["one", "two"]
    assert since(server) == [None, f"{T}06Z"]


def test_a_container_that_wrote_nothing_has_an_empty_log(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, END)
    assert list(client.logs("ns", "p", follow=True)) == []


@pytest.mark.parametrize("then", ["reset", "hang", "end"])
def test_a_broken_log_goes_on_where_it_broke(server: Server, connect: Connect, then: str) -> None:
    first = [line("05.1", "a"), line("06.1", "b"), line("06.2", "b")]
    again = [line("05.1", "a"), line("06.1", "b"), line("06.2", "b"), line("06.3", "b"), line("06.3", "c")]
    server.on("GET", PATH, Answer(200, lines=first, then=then), Answer(200, lines=again), Answer(200, lines=again[1:]))
    client = connect(log_silence_seconds=0.2)
    assert texts(list(client.logs("ns", "p", follow=True))) == ["a", "b", "b", "b", "c"]


def test_two_equal_lines_of_one_moment_are_two_lines(server: Server, client: KubernetesClient) -> None:
    same = [line("05.1", "x")] * 3
    server.on("GET", PATH, Answer(200, lines=same[:2], then="reset"), Answer(200, lines=same))
    assert texts(list(client.logs("ns", "p", follow=True))) == ["x", "x", "x"]


def test_half_a_line_is_not_shown_before_it_is_whole(server: Server, client: KubernetesClient) -> None:
    server.on(
        "GET",
        PATH,
        Answer(200, lines=[line("05.1", "one"), b"2026-01-02T03:04:06.1Z tw"]),
        Answer(200, lines=[line("05.1", "one"), line("06.1", "two")]),
    )
    assert texts(list(client.logs("ns", "p", follow=True))) == ["one", "two"]


def test_a_last_line_without_an_end_is_shown(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, Answer(200, lines=[line("05.1", "one"), b"2026-01-02T03:04:06.1Z last"]))
    assert texts(list(client.logs("ns", "p", follow=True))) == ["one", "last"]


def test_a_line_that_comes_late_with_an_older_time_is_kept(server: Server, client: KubernetesClient) -> None:
    log = [line("06.00", "out"), line("05.99", "error, a moment older")]
    server.on("GET", PATH, Answer(200, lines=log[:1], then="reset"), Answer(200, lines=log))
    assert texts(list(client.logs("ns", "p", follow=True))) == ["out", "error, a moment older"]


def test_a_container_that_has_not_started_is_waited_for(server: Server, client: KubernetesClient) -> None:
    waiting = refusal(400, "BadRequest", 'container "c" in pod "p" is waiting to start: ContainerCreating')
    server.on("GET", PATH, waiting, waiting, Answer(200, lines=[line("05.1", "one")]))
    assert texts(list(client.logs("ns", "p", follow=True))) == ["one"]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(refusal(403, "Forbidden", 'User "u" cannot get resource "pods/log"'), Forbidden, id="no permission"),
        pytest.param(refusal(404, "NotFound", 'pods "p" not found'), NotFound, id="no pod"),
        pytest.param(refusal(400, "BadRequest", "a container name must be specified"), Rejected, id="which container"),
    ],
)
def test_a_log_that_can_not_be_read_is_an_error(
    server: Server, client: KubernetesClient, answer: Answer, kind: type[Exception]
) -> None:
    server.on("GET", PATH, answer)
    with pytest.raises(kind):
        next(client.logs("ns", "p", follow=True))


def test_a_pod_that_goes_away_ends_its_log(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, Answer(200, lines=[line("05.1", "one")], then="reset"), refusal(404, "NotFound"))
    assert texts(list(client.logs("ns", "p", follow=True))) == ["one"]


def test_an_unreachable_kubelet_is_waited_for(server: Server, client: KubernetesClient) -> None:
    server.on(
        "GET", PATH, refusal(500, "InternalError", "dial tcp 10.0.0.7:10250: i/o timeout"), Answer(200, lines=[line("05", "x")])
    )
    assert texts(list(client.logs("ns", "p", follow=True))) == ["x"]


def test_since_is_exact_though_the_server_cuts_it(server: Server, client: KubernetesClient) -> None:
    log = [line("05.100000001", "a"), line("05.100000002", "b"), line("05.2", "c")]
    server.on("GET", PATH, Answer(200, lines=log))
    assert texts(list(client.logs("ns", "p", since=f"{T}05.100000002Z"))) == ["c"]
    assert texts(list(client.logs("ns", "p", since=f"{T}05.100000002Z", follow=True))) == ["c"]


def test_close_ends_a_log_that_is_silent(server: Server, client: KubernetesClient) -> None:
    server.on("GET", PATH, silence())
    stream = client.logs("ns", "p", follow=True)
    thread = threading.Thread(target=lambda: list(stream))
    thread.start()
    while not server.seen:
        time.sleep(0.01)
    stream.close()
    thread.join(2.0)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("raw", "parsed"),
    [
        (b"2026-01-02T03:04:05.678901234Z text\n", ("2026-01-02T03:04:05.678901234Z", "text")),
        (b"2026-01-02T03:04:05Z \n", ("2026-01-02T03:04:05Z", "")),
        (b"2026-01-02T03:04:05.5+02:00 text\n", ("2026-01-02T03:04:05.5+02:00", "text")),
        (b"unable to retrieve container logs\n", ("", "unable to retrieve container logs")),
        (b"2026-01-02T03:04:05Z \xff\n", ("2026-01-02T03:04:05Z", "\ufffd")),
        (b"\n", ("", "")),
    ],
)
def test_lines_are_split_into_time_and_text(raw: bytes, parsed: tuple[str, str]) -> None:
    assert parse(raw) == parsed


def test_a_stamp_with_a_zone_is_compared_in_utc() -> None:
    raw = [b"2026-01-02T05:04:05.1+02:00 a\n", b"2026-01-02T05:04:05.3+02:00 b\n"]
    assert texts(list(once((one for one in raw), f"{T}05.2Z"))) == ["b"]


class Kubelet:
    """A log that grows while it is read, cut to seconds on `sinceTime`, broken where the test says."""

    def __init__(self, log: list[tuple[float, str]], breaks: list[int]) -> None:
        self._log = [(datetime(2026, 1, 1) + timedelta(seconds=at), text) for at, text in log]
        self._breaks = list(breaks)

    def open_at(self, start: str) -> Generator[bytes, None, None]:
        first = datetime.fromisoformat(start.rstrip("Z")) if start else datetime.min
        lines = [f"{at.isoformat()}Z {text}\n".encode() for at, text in self._log if at >= first]
        if not self._breaks:
            yield from lines
            return
        yield from lines[: self._breaks.pop(0)]
        raise Unavailable("broken")


@given(
    steps=st.lists(st.tuples(st.sampled_from([0.0, 0.0000001, 0.3, 1.0, 7.0]), st.sampled_from("ab")), max_size=40),
    breaks=st.lists(st.integers(0, 12), max_size=20),
)
def test_any_log_over_any_breaks_comes_once_and_whole(steps: list[tuple[float, str]], breaks: list[int]) -> None:
    at, log = 0.0, []
    for step, text in steps:
        at += step
        log.append((at, text))
    clock = FakeClock()
    followed = follow(Kubelet(log, breaks).open_at, sleep=lambda seconds: None, monotonic=clock.monotonic, backoff=Backoff())
    assert texts(list(followed)) == [text for _, text in log]


def test_what_the_kubelet_writes_in_place_of_a_log_is_no_output() -> None:
    def lines() -> Generator[bytes, None, None]:
        yield b"2026-01-02T03:04:05Z unable to retrieve container logs for my own reasons\n"
        yield b"unable to retriece container logs for containerd://abc"

    assert list(once(lines(), "")) == [("2026-01-02T03:04:05Z", "unable to retrieve container logs for my own reasons")]
