"""Watches: what comes first, what comes then, and how they go on through everything that ends a stream."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, ClusterClient, Resource
from metaflow_extensions.kubernetes_ext.cluster.requests import Request
from metaflow_extensions.kubernetes_ext.cluster.transport import Pool, Transport
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Forbidden, NotFound
from tests.contract.objects import job, jobset
from tests.contract.places import JOBSETS, ON_ALL, ON_REAL, ON_SERVERS, Place
from tests.contract.waiting import Reader, until


def watching(place: Place, client: ClusterClient | None = None, resource: Resource = JOBS, **selectors: str) -> Reader:
    return Reader((client or place.client).watch(resource, place.namespace, **selectors))


def relabel(place: Place, name: str, **labels: str | None) -> None:
    place.client.patch(JOBS, place.namespace, name, {"metadata": {"labels": labels}})


@ON_ALL
def test_first_what_there_is_then_each_change(place: Place) -> None:
    place.create(JOBS, job("old"))
    with watching(place) as events:
        assert events.event() == ("SYNCED", "old")
        place.create(JOBS, job("new"))
        assert events.event() == ("ADDED", "new")
        relabel(place, "old", a="1")
        modified = events.next()
        assert (modified.type, modified.object["metadata"]["labels"]["a"]) == ("MODIFIED", "1")
        last = place.client.get(JOBS, place.namespace, "new")["metadata"]
        place.client.delete(JOBS, place.namespace, "new")
        deleted = events.next()
        assert (deleted.type, deleted.object["metadata"]["uid"]) == ("DELETED", last["uid"])
        assert int(deleted.object["metadata"]["resourceVersion"]) > int(last["resourceVersion"])


@ON_ALL
def test_a_selector_makes_entering_an_addition_and_leaving_a_deletion(place: Place) -> None:
    place.create(JOBS, job("one", {"a": "1"}))
    with watching(place, label_selector="a=1") as events:
        assert events.event() == ("SYNCED", "one")
        place.create(JOBS, job("two", {"a": "2"}))
        relabel(place, "one", b="1")
        assert events.event() == ("MODIFIED", "one")
        relabel(place, "one", a="2")
        left = events.next()
        assert (left.type, left.object["metadata"]["labels"]["a"]) == ("DELETED", "1")  # as it was in the selection
        relabel(place, "two", a="1")
        assert events.event() == ("ADDED", "two")
        place.client.delete(JOBS, place.namespace, "one")
        place.client.delete(JOBS, place.namespace, "two")
        assert events.event() == ("DELETED", "two")


@ON_ALL
def test_a_watch_of_one_name_sees_that_name_only_also_when_it_is_used_again(place: Place) -> None:
    with watching(place, field_selector="metadata.name=one") as events:
        assert events.event() == ("SYNCED", "")
        uids = []
        for _ in range(2):
            place.create(JOBS, job("other"))
            uids.append(place.create(JOBS, job("one"))["metadata"]["uid"])
            place.client.delete(JOBS, place.namespace, "other")
            place.client.delete(JOBS, place.namespace, "one")
        seen = [events.next() for _ in range(4)]
    assert [event.type for event in seen] == ["ADDED", "DELETED", "ADDED", "DELETED"]
    assert [event.object["metadata"]["uid"] for event in seen] == [uids[0], uids[0], uids[1], uids[1]]


@ON_SERVERS
@pytest.mark.parametrize("resource", [pytest.param(JOBS, id="jobs"), pytest.param(JOBSETS, id="jobsets")])
def test_objects_in_lists_and_events_are_complete(place: Place, resource: Resource) -> None:
    """Lists of built-in kinds leave kind and apiVersion of the items out; our readers must not need them."""
    body = job("one") if resource is JOBS else jobset("one", managedBy="contract.example.com/nobody")
    with watching(place, resource=resource) as events:
        assert events.event() == ("SYNCED", "")
        created = place.create(resource, body)
        event = events.next()
    assert (event.type, event.object) == ("ADDED", created)


@ON_ALL
def test_closing_ends_a_watch_that_another_thread_waits_in(place: Place) -> None:
    with watching(place) as events:
        assert events.event() == ("SYNCED", "")
        events.stream.close()
        assert events.rest() == []
        until(lambda: events.has_ended, "the thread is free")


@ON_SERVERS
def test_closing_the_client_ends_all_its_watches(place: Place) -> None:
    with (
        place.another_client() as client,
        watching(place, client) as first,
        watching(place, client, JOBSETS) as second,
    ):
        assert (first.event()[0], second.event()[0]) == ("SYNCED", "SYNCED")
        client.close()
        assert (first.rest(), second.rest()) == ([], [])


class Spying(Transport):
    """Counts the streams that are opened; the first watch of `oldest_first` asks for a version long forgotten."""

    def __init__(self, client: KubernetesClient, *, oldest_first: bool = False) -> None:
        super().__init__(client._login)
        self.opened = 0
        self._forget = oldest_first
        client._transport = self

    def lines(self, request: Request, pool: Pool, read_timeout: float) -> Generator[bytes, None, None]:
        if self._forget:
            self._forget = False
            request = replace(request, query={**request.query, "resourceVersion": "1"})
        found = super().lines(request, pool, read_timeout)
        self.opened += 1
        return found


@ON_SERVERS
def test_a_stream_that_the_server_has_ended_is_resumed_without_a_new_list(place: Place) -> None:
    with place.another_client(watch_seconds=1) as client:
        spying = Spying(client)
        with watching(place, client) as events:
            assert events.event() == ("SYNCED", "")
            for number in (1, 2):
                place.create(JOBS, job(f"job-{number}"))
                assert events.event() == ("ADDED", f"job-{number}")
                seen = spying.opened
                until(lambda seen=seen: spying.opened > seen, "the next stream")  # type: ignore[misc]


@ON_SERVERS
def test_a_version_that_is_forgotten_makes_the_list_come_again(place: Place) -> None:
    """410, as HTTP 200 with an ERROR event. A JobSet's watch cache never reaches back to version 1: its kind came later."""
    troubles: list[ClusterError | None] = []
    with place.another_client() as client:
        spying = Spying(client, oldest_first=True)
        stream = client.watch(JOBSETS, place.namespace, on_trouble=troubles.append)
        with Reader(stream) as events:
            assert events.event() == ("SYNCED", "")
            assert events.event() == ("SYNCED", "")
            place.create(JOBSETS, jobset("one", managedBy="contract.example.com/nobody"))
            assert events.event() == ("ADDED", "one")
        assert spying.opened == 2
    assert troubles == []


@ON_SERVERS
def test_a_watch_of_an_unknown_kind_fails(place: Place) -> None:
    """The administrator's: others are told that they may not, before the server looks for the kind."""
    unknown = Resource("contract.example.com", "v1", "gangs", "Gang")
    with watching(place, place.admin, unknown) as events, pytest.raises(NotFound, match="is not installed"):
        events.next()


@ON_REAL
def test_a_watch_that_is_not_permitted_fails_and_names_the_permission(place: Place) -> None:
    with (
        watching(place, resource=Resource("", "v1", "secrets", "Secret")) as events,
        pytest.raises(Forbidden, match='needs the verb "list" on "secrets"'),
    ):
        events.next()


@ON_SERVERS
def test_changes_of_many_objects_come_in_the_order_of_their_versions(place: Place) -> None:
    with watching(place) as events:
        assert events.event() == ("SYNCED", "")
        for number in range(10):
            place.create(JOBS, job(f"job-{number}"))
            relabel(place, f"job-{number}", a="1")
        versions = [int(events.next().object["metadata"]["resourceVersion"]) for _ in range(20)]
    assert versions == sorted(versions)
