"""Watches: nothing is missed over any kind of break, and quiet hours cost few requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS, WatchEvent
from metaflow_extensions.kubernetes_ext.cluster.retry import Backoff
from metaflow_extensions.kubernetes_ext.cluster.watch import events
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Forbidden, NotFound, Unavailable
from tests.fakes import FakeClock, take
from tests.unit.cluster.server import Answer, Server, refusal, reset, silence, status_error

PATH = "/api/v1/namespaces/ns/pods"
Connect = Callable[..., KubernetesClient]


def pod(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def change(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": pod(name, version)}


def listing(version: int, *pods: dict[str, Any]) -> Answer:
    return Answer(200, {"metadata": {"resourceVersion": str(version)}, "items": list(pods)})


def told(watched: list[WatchEvent]) -> list[str]:
    """Events as short words: "SYNCED a b", "MODIFIED a"."""
    return [
        " ".join(["SYNCED", *(item["metadata"]["name"] for item in event.object["items"])])
        if event.type == "SYNCED"
        else f"{event.type} {event.object['metadata']['name']}"
        for event in watched
    ]


class Cluster:
    """Answers lists and watches of pods from two scripts, the last answer of each stays."""

    def __init__(self, server: Server, lists: list[Answer], watches: list[Answer]) -> None:
        self._scripts = {False: lists, True: watches}
        server.on("GET", PATH, self._answer)
        self.server = server

    def _answer(self, seen: Any) -> Answer:
        script = self._scripts["watch" in seen.query]
        return script.pop(0) if len(script) > 1 else script[0]

    @property
    def resumed_at(self) -> list[str]:
        return [one.query["resourceVersion"] for one in self.server.seen if "watch" in one.query]

    @property
    def lists(self) -> int:
        return sum("watch" not in one.query for one in self.server.seen)


QUIET = Answer(200, lines=[], then="hang")


def test_a_watch_lists_then_watches_from_there(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [listing(5, pod("a", 3))], [Answer(200, lines=[change("MODIFIED", "a", 6)], then="hang")])
    watched = take(client.watch(PODS, "ns", label_selector="x=y"), 2)
    assert told(watched) == ["SYNCED a", "MODIFIED a"]
    query = server.seen[1].query
    assert query["labelSelector"] == "x=y"
    assert query["allowWatchBookmarks"] == "true"
    assert 300 <= int(query["timeoutSeconds"]) <= 375


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until the connection closes"])
@pytest.mark.parametrize("then", ["end", "reset"])
def test_a_stream_that_ends_is_resumed_where_it_was(server: Server, client: KubernetesClient, then: str, chunked: bool) -> None:
    first = Answer(200, lines=[change("ADDED", "a", 6), change("MODIFIED", "a", 7)], then=then, chunked=chunked)
    cluster = Cluster(server, [listing(5)], [first, Answer(200, lines=[change("ADDED", "b", 9)], then="hang")])
    assert told(take(client.watch(PODS, "ns"), 4)) == ["SYNCED", "ADDED a", "MODIFIED a", "ADDED b"]
    assert cluster.resumed_at == ["5", "7"]
    assert cluster.lists == 1


def test_a_bookmark_moves_the_place_to_resume_at(server: Server, client: KubernetesClient) -> None:
    bookmark = Answer(200, lines=[{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "42"}}}])
    cluster = Cluster(server, [listing(5)], [bookmark, Answer(200, lines=[change("ADDED", "b", 50)], then="hang")])
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED", "ADDED b"]
    assert cluster.resumed_at == ["5", "42"]


def test_a_forgotten_version_lists_again(server: Server, client: KubernetesClient) -> None:
    gone = Answer(200, lines=[{"type": "ERROR", "object": status_error(410, "Expired", "too old resource version: 1 (9)")}])
    cluster = Cluster(
        server, [listing(5, pod("a", 3)), listing(9, pod("b", 8))], [gone, Answer(200, lines=[change("MODIFIED", "b", 10)])]
    )
    assert told(take(client.watch(PODS, "ns"), 3)) == ["SYNCED a", "SYNCED b", "MODIFIED b"]
    assert cluster.resumed_at == ["5", "9"]


def test_a_410_answer_lists_again(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [listing(5, pod("a", 3)), listing(9, pod("b", 8))], [refusal(410, "Expired"), QUIET])
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED a", "SYNCED b"]


def test_an_event_cut_in_the_middle_comes_whole_after_the_resume(server: Server, client: KubernetesClient) -> None:
    cut = Answer(200, lines=[change("ADDED", "a", 6), b'{"type": "MODIF'])
    whole = Answer(200, lines=[change("MODIFIED", "a", 7)], then="hang")
    cluster = Cluster(server, [listing(5)], [cut, whole])
    assert told(take(client.watch(PODS, "ns"), 3)) == ["SYNCED", "ADDED a", "MODIFIED a"]
    assert cluster.resumed_at == ["5", "6"]


def test_a_silent_stream_is_given_up_and_resumed(server: Server, connect: Connect) -> None:
    cluster = Cluster(server, [listing(5)], [QUIET, Answer(200, lines=[change("ADDED", "a", 6)], then="hang")])
    client = connect(watch_seconds=0.1, slack_seconds=0.1)
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED", "ADDED a"]
    assert cluster.resumed_at == ["5", "5"]


def test_headers_that_do_not_come_are_given_up(server: Server, connect: Connect) -> None:
    Cluster(server, [listing(5)], [silence(), Answer(200, lines=[change("ADDED", "a", 6)], then="hang")])
    client = connect(watch_seconds=0.1, slack_seconds=0.1)
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED", "ADDED a"]


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_an_overloaded_server_is_waited_for_and_told(server: Server, client: KubernetesClient, code: int) -> None:
    heard: list[ClusterError | None] = []
    Cluster(
        server,
        [refusal(code), refusal(code), listing(5)],
        [refusal(code), Answer(200, lines=[change("ADDED", "a", 6)], then="hang")],
    )
    assert told(take(client.watch(PODS, "ns", on_trouble=heard.append), 2)) == ["SYNCED", "ADDED a"]
    assert [type(one) for one in heard] == [Unavailable, Unavailable, Unavailable, type(None)]


def test_a_stream_that_only_breaks_is_no_trouble(server: Server, client: KubernetesClient) -> None:
    heard: list[ClusterError | None] = []
    Cluster(
        server,
        [listing(5)],
        [Answer(200, lines=[change("ADDED", "a", 6)], then="reset"), Answer(200, lines=[change("ADDED", "b", 7)], then="hang")],
    )
    take(client.watch(PODS, "ns", on_trouble=heard.append), 3)
    assert heard == []


def test_a_watch_without_permission_is_refused(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [listing(5)], [refusal(403, "Forbidden", 'User "u" cannot watch resource "pods"')])
    stream = client.watch(PODS, "ns")
    assert told(take(stream, 1)) == ["SYNCED"]
    with pytest.raises(Forbidden, match="Not allowed to watch pods in namespace ns"):
        next(stream)


def test_an_unknown_kind_is_refused(client: KubernetesClient) -> None:
    with pytest.raises(NotFound, match="not installed"):
        next(client.watch(PODS, "ns"))


def test_a_log_in_that_expires_meanwhile_is_waited_for(server: Server, client: KubernetesClient) -> None:
    refused = refusal(401, "Unauthorized")
    Cluster(server, [listing(5)], [refused, refused, refused, Answer(200, lines=[change("ADDED", "a", 6)], then="hang")])
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED", "ADDED a"]


def test_a_log_in_that_is_wrong_from_the_start_is_refused(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [refusal(401, "Unauthorized")], [QUIET])
    with pytest.raises(Forbidden, match="Log in again"):
        next(client.watch(PODS, "ns"))


@pytest.mark.parametrize("answer", [QUIET, silence()], ids=["open stream", "no headers"])
@pytest.mark.parametrize("which", ["client", "stream"])
def test_close_ends_blocked_watches_at_once(server: Server, client: KubernetesClient, answer: Answer, which: str) -> None:
    cluster = Cluster(server, [listing(5)], [answer])
    streams = [client.watch(PODS, "ns") for _ in range(4)]
    threads = [threading.Thread(target=lambda stream: list(stream), args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    while len(cluster.resumed_at) < 4:
        time.sleep(0.01)
    time.sleep(0.05)
    for closable in [client] if which == "client" else streams:
        closable.close()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_closing_one_stream_leaves_the_others(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [listing(5)], [Answer(200, lines=[change("ADDED", "a", 6)], then="hang")])
    first, second = client.watch(PODS, "ns"), client.watch(PODS, "ns")
    take(first, 1)
    first.close()
    assert list(first) == []
    assert told(take(second, 2)) == ["SYNCED", "ADDED a"]


# ---- the policy alone, in simulated time


class Quiet:
    """A source whose streams bring nothing: each ends after `seconds`, by an error if there is one."""

    def __init__(self, clock: FakeClock, seconds: float, until: float, error: ClusterError | None = None) -> None:
        self.lists = self.streams = 0
        self._clock = clock
        self._seconds = seconds
        self._until = until
        self._error = error

    def list(self) -> dict[str, Any]:
        self.lists += 1
        return {"metadata": {"resourceVersion": "5"}, "items": []}

    def stream(self, resource_version: str) -> Generator[dict[str, Any], None, None]:
        if self._clock.monotonic() >= self._until:
            raise Forbidden("the end of the test", status=403)
        self.streams += 1
        self._clock.sleep(self._seconds)
        if self._error:
            raise self._error
        return (one for one in ())


def run(source: Quiet, clock: FakeClock) -> None:
    with pytest.raises(Forbidden, match="the end of the test"):
        list(events(source, sleep=clock.sleep, monotonic=clock.monotonic, backoff=Backoff(draw=lambda: 0.0)))


def test_a_quiet_hour_costs_a_request_every_five_minutes() -> None:
    clock = FakeClock()
    source = Quiet(clock, 300, until=3600)
    run(source, clock)
    assert (source.lists, source.streams) == (1, 12)


def test_an_hour_of_streams_that_end_at_once_costs_a_request_every_half_minute() -> None:
    clock = FakeClock()
    source = Quiet(clock, 0, until=3600)
    run(source, clock)
    assert source.lists == 1
    assert 120 <= source.streams <= 130


def test_an_hour_without_a_server_costs_a_request_every_half_minute() -> None:
    clock = FakeClock()
    source = Quiet(clock, 0, until=3600, error=Unavailable("refused"))
    run(source, clock)
    assert 120 <= source.streams <= 130


def test_a_server_that_forgets_at_once_is_not_asked_in_a_tight_loop() -> None:
    clock = FakeClock()
    source = Quiet(clock, 0, until=3600, error=ClusterError("too old", status=410))
    run(source, clock)
    assert source.lists <= 131


def test_retry_after_is_waited_for() -> None:
    clock = FakeClock()
    source = Quiet(clock, 0, until=400, error=Unavailable("busy", status=429, retry_after=100.0))
    run(source, clock)
    assert source.streams == 4


def test_many_clients_don_not_come_back_together() -> None:
    draws = iter([0.0, 0.25, 0.5, 0.75])
    first = {next(Backoff(draw=lambda: next(draws)).delays()) for _ in range(4)}
    assert len(first) == 4


def test_resets_of_a_reset_server_are_survived(server: Server, client: KubernetesClient) -> None:
    Cluster(server, [reset(), reset(), listing(5, pod("a", 1))], [reset(), Answer(200, lines=[change("ADDED", "b", 6)])])
    assert told(take(client.watch(PODS, "ns"), 2)) == ["SYNCED a", "ADDED b"]
