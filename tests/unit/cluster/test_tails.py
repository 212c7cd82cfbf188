"""Following many logs in one loop, over a server that breaks, hangs and refuses."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from metaflow_extensions.kubernetes_ext.cluster import tails as module
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import LogEnd, LogGap, LogLine, LogPiece, Tails
from metaflow_extensions.kubernetes_ext.errors import Forbidden
from tests.unit.cluster.server import Answer, Seen, Server, refusal, reset, silence

T = "2026-01-02T03:04:"
Connect = Callable[..., KubernetesClient]


def path(pod: str = "p") -> str:
    return f"/api/v1/namespaces/ns/pods/{pod}/log"


def line(second: str, text: str) -> bytes:
    return f"{T}{second}Z {text}\n".encode()


def followed(client: KubernetesClient, *pods: str) -> list[LogPiece]:
    """All pieces of the pods' logs, whose containers have ended."""
    tails, pieces, left = client.tails("ns"), [], set(pods)
    for pod in pods:
        tails.add(pod, pod)
        tails.finish(pod)
    for piece in tails:
        pieces.append(piece)
        if isinstance(piece, LogEnd):
            left.remove(piece.key)
            if not left:
                tails.close()
    return pieces


def texts(pieces: list[LogPiece], key: str = "p") -> list[str]:
    return [piece.text for piece in pieces if isinstance(piece, LogLine) and piece.key == key]


def since(server: Server) -> list[str | None]:
    return [one.query.get("sinceTime") for one in server.seen]


def in_thread(tails: Tails) -> tuple[threading.Thread, list[LogPiece]]:
    pieces: list[LogPiece] = []
    thread = threading.Thread(target=lambda: pieces.extend(tails))
    thread.start()
    return thread, pieces


def wait_for(condition: Callable[[], object]) -> None:
    give_up_at = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.005)


def test_a_log_comes_with_its_times_and_ends(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path(), Answer(200, lines=[line("05.1", "one"), line("07.5", "two")]))
    assert followed(client, "p") == [LogLine("p", f"{T}05.1Z", "one"), LogLine("p", f"{T}07.5Z", "two"), LogEnd("p")]
    assert [one.query for one in server.seen] == [{"follow": "true", "timestamps": "true"}]


@pytest.mark.parametrize(("then", "chunked"), [("reset", True), ("hang", True), ("hang", False)])
def test_a_broken_log_goes_on_where_it_broke(server: Server, connect: Connect, then: str, chunked: bool) -> None:
    first = [line("05.1", "a"), line("06.1", "b"), line("06.2", "b"), line("06.3", "c")[:-3]]
    again = [line("05.1", "a"), line("06.1", "b"), line("06.2", "b"), line("06.3", "c"), line("06.4", "d")[:-1]]
    server.on("GET", path(), Answer(200, lines=first, then=then, chunked=chunked), Answer(200, lines=again))
    assert texts(followed(connect(last_silence_seconds=0.2), "p")) == ["a", "b", "b", "c", "d"]
    assert {None, f"{T}05Z"} == set(since(server))  # a machine that is slow makes it look more often


def test_more_logs_than_may_be_open_take_turns(server: Server, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silent ones make room for others, nothing is lost or shown twice, and waiting for a turn does not spin."""
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    monkeypatch.setattr(module, "_TURN_SECONDS", 0.2)
    pods = [f"p{number}" for number in range(5)]
    first, then = [line("05.1", "a")], [line("05.1", "a"), line("05.2", "b")]
    for pod in pods:
        server.on(
            "GET",
            path(pod),
            Answer(200, lines=first, then="hang"),
            Answer(200, lines=first, then="hang"),
            Answer(200, lines=then),
        )
    tails = connect().tails("ns")
    selects = 0
    original = tails._select

    def select(seconds: float) -> object:
        nonlocal selects
        selects += 1
        return original(seconds)

    monkeypatch.setattr(tails, "_select", select)
    for pod in pods:
        tails.add(pod, pod)
    thread, pieces = in_thread(tails)
    wait_for(lambda: all(texts(pieces, pod) == ["a", "b"] for pod in pods))
    tails.close()
    thread.join(20)
    assert len(server.seen) >= 3 * len(pods)
    assert selects < 1000  # by spinning: some 25,000 a second


def test_a_page_in_place_of_a_log_is_not_shown(server: Server, connect: Connect) -> None:
    page = Answer(200, b"<html>Please log in to this network.</html>", {"Content-Type": "text/html"})
    server.on("GET", path(), page, Answer(200, lines=[line("05.1", "a")]))
    assert texts(followed(connect(), "p")) == ["a"]


def test_a_silent_log_is_opened_again(server: Server, connect: Connect) -> None:
    server.on("GET", path(), silence(), Answer(200, lines=[line("05", "a")], then="hang"))
    tails = connect(log_silence_seconds=0.1).tails("ns")
    tails.add("p", "p")
    assert next(tails) == LogLine("p", f"{T}05Z", "a")
    tails.close()


def test_a_rotated_log_has_a_mark(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path(), Answer(200, lines=[line("05", "a")], then="reset"), Answer(200, lines=[line("09", "z")]))
    assert followed(client, "p")[1] == LogGap("p", f"{T}05Z", f"{T}09Z")


def test_logs_that_come_together_are_told_in_the_order_of_their_times(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path("p"), Answer(200, lines=[line("05.1", "1"), line("05.30", "3")]))
    server.on("GET", path("q"), Answer(200, lines=[line("05.2", "2"), line("05.4", "4")]))
    pieces = followed(client, "p", "q")
    assert (texts(pieces, "p"), texts(pieces, "q")) == (["1", "3"], ["2", "4"])


def test_a_container_that_has_not_started_is_waited_for(server: Server, client: KubernetesClient) -> None:
    waiting = refusal(400, "BadRequest", 'container "c" in pod "p" is waiting to start: ContainerCreating')
    server.on("GET", path(), waiting, waiting, Answer(200, lines=[line("05.1", "one")], then="hang"))
    tails = client.tails("ns")
    tails.add("p", "p")
    assert next(tails) == LogLine("p", f"{T}05.1Z", "one")
    tails.close()


@pytest.mark.parametrize(
    "trouble", [refusal(500, "InternalError", "dial tcp 10.0.0.7:10250: i/o timeout"), reset(), refusal(429)], ids=str
)
def test_an_unreachable_kubelet_or_server_is_waited_for(server: Server, client: KubernetesClient, trouble: Answer) -> None:
    server.on("GET", path(), trouble, Answer(200, lines=[line("05", "x")]))
    assert texts(followed(client, "p")) == ["x"]


def test_one_log_that_can_not_be_read_does_not_harm_the_others(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path("p"), refusal(403, "Forbidden", 'User "u" cannot get resource "pods/log"'))
    server.on("GET", path("q"), Answer(200, lines=[line("05", "x")]))
    pieces = followed(client, "p", "q")
    assert texts(pieces, "q") == ["x"]
    (error,) = [piece.error for piece in pieces if isinstance(piece, LogEnd) and piece.key == "p"]
    assert isinstance(error, Forbidden)


def test_refused_credentials_are_renewed_once(server: Server, connect: Connect) -> None:
    tokens = iter(["old", "new"])

    def answer(seen: Seen) -> Answer:
        is_new = seen.headers["Authorization"] == "new"
        return Answer(200, lines=[line("05", "x")]) if is_new else refusal(401, "Unauthorized")

    server.on("GET", path(), answer)
    assert texts(followed(connect(load=lambda: server.access(authorization=next(tokens))), "p")) == ["x"]


def test_what_remains_refused_is_an_error(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path(), refusal(401, "Unauthorized"))
    (end,) = followed(client, "p")
    assert isinstance(end, LogEnd)
    assert end.error is not None
    assert len(server.seen) == 2


def test_close_ends_silent_logs_from_another_thread(server: Server, client: KubernetesClient) -> None:
    server.on("GET", path(), silence())
    tails = client.tails("ns")
    thread, pieces = in_thread(tails)
    tails.add("p", "p")
    wait_for(lambda: server.seen)
    tails.close()
    thread.join(20)
    assert not thread.is_alive()
    assert pieces == []


def test_a_hundred_silent_logs_cost_no_thread_each_and_one_that_speaks_is_heard(
    server: Server, client: KubernetesClient
) -> None:
    """The server sends not even a head before there is a line, as a kubelet."""
    for number in range(100):
        server.on("GET", path(f"p{number}"), silence())
    server.on("GET", path("q"), Answer(200, lines=[line("05", "x")], then="hang"))
    before = {thread for thread in threading.enumerate() if "process_request" not in thread.name}
    tails = client.tails("ns")
    thread, pieces = in_thread(tails)
    for number in range(100):
        tails.add(f"p{number}", f"p{number}")
    wait_for(lambda: len(server.seen) == 100)
    tails.add("q", "q")
    wait_for(lambda: pieces)
    ours = [one for one in threading.enumerate() if "process_request" not in one.name and one not in before]
    assert len(ours) <= 5
    tails.close()
    thread.join(20)
    assert not thread.is_alive()
