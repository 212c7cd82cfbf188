"""Which events a watcher gets and when bookmarks come."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from metaflow_devcluster.api.requests import Target
from metaflow_devcluster.api.watching import Event, WatchOptions, event_of, events, watch_options
from metaflow_devcluster.resources import served_resources
from metaflow_devcluster.store import Change, Store

Object = dict[str, Any]
RESOURCES = served_resources()
TARGET = Target(resource=RESOURCES["configmaps"], namespace="n")


def labelled(value: str | None) -> Object:
    return {"metadata": {"name": "a", "namespace": "n", "labels": {"t": value} if value else {}}}


def is_selected(obj: Object) -> bool:
    return bool(obj["metadata"]["labels"].get("t") == "x")


@pytest.mark.parametrize(
    ("kind", "before", "after", "seen"),
    [
        pytest.param("ADDED", None, "x", "ADDED", id="created inside"),
        pytest.param("ADDED", None, None, None, id="created outside"),
        pytest.param("MODIFIED", "x", "x", "MODIFIED", id="stays inside"),
        pytest.param("MODIFIED", None, "x", "ADDED", id="enters"),
        pytest.param("MODIFIED", "x", None, "DELETED", id="leaves"),
        pytest.param("MODIFIED", None, "y", None, id="stays outside"),
        pytest.param("DELETED", "x", "x", "DELETED", id="deleted inside"),
        pytest.param("DELETED", "y", "y", None, id="deleted outside"),
    ],
)
def test_a_selector_decides_what_a_change_is(kind: str, before: str | None, after: str | None, seen: str | None) -> None:
    previous = None if kind == "ADDED" else labelled(before)
    change = Change(kind, "configmaps", labelled(after), previous, 7)
    event = event_of(change, is_selected)
    assert (event[0] if event else None) == seen
    unselected = event_of(change, None)
    assert unselected
    assert unselected[0] == kind


def test_what_leaves_shows_its_last_state_inside_with_the_new_version() -> None:
    event = event_of(Change("MODIFIED", "configmaps", labelled(None), labelled("x"), 7), is_selected)
    assert event
    assert event[1]["metadata"] == {"name": "a", "namespace": "n", "labels": {"t": "x"}, "resourceVersion": "7"}


def options(**given: Any) -> WatchOptions:
    defaults: Object = {"where": None, "since": None, "seconds": 0.3, "bookmarks": False, "initial_events": False}
    return WatchOptions(**{**defaults, **given})


def watched(given: WatchOptions, *, writes: int = 1, bookmark_seconds: float = 60) -> list[Event]:
    async def scenario() -> list[Event]:
        store = Store(RESOURCES)
        store.create("configmaps", {"metadata": {"name": "first", "namespace": "n"}})
        found: list[Event] = []
        async for batch in events(store, TARGET, given, bookmark_seconds=bookmark_seconds):
            if not found and writes:
                for number in range(writes):
                    store.create("configmaps", {"metadata": {"name": f"later-{number}", "namespace": "n"}})
                    store.create("configmaps", {"metadata": {"name": f"later-{number}", "namespace": "other"}})
            found += batch
        return found

    return asyncio.run(scenario())


def test_what_is_there_comes_first_and_other_namespaces_never() -> None:
    assert [(kind, obj["metadata"]["name"]) for kind, obj in watched(options())] == [
        ("ADDED", "first"),
        ("ADDED", "later-0"),
    ]


def test_bookmarks_come_after_writes_only() -> None:
    found = watched(options(bookmarks=True, seconds=2.2), bookmark_seconds=0.05)
    assert [kind for kind, _ in found] == ["ADDED", "ADDED", "BOOKMARK"]
    assert found[2][1] == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "4"}}


def test_the_last_bookmark_comes_two_seconds_before_the_end() -> None:
    assert [kind for kind, _ in watched(options(bookmarks=True, seconds=2.1))] == ["ADDED", "ADDED", "BOOKMARK"]


def test_short_watches_have_no_bookmark() -> None:
    assert [kind for kind, _ in watched(options(bookmarks=True, seconds=0.2))] == ["ADDED", "ADDED"]


def test_a_forgotten_version_is_an_error_event_and_the_end() -> None:
    (found,) = watched(options(since=0), writes=0)
    assert (found[0], found[1]["code"], found[1]["reason"]) == ("ERROR", 410, "Expired")


@pytest.mark.parametrize(
    ("query", "since", "initial"),
    [
        ({}, None, False),
        ({"resourceVersion": "0"}, None, False),
        ({"resourceVersion": "7"}, 7, False),
        ({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, None, True),
        ({"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "7"}, 7, False),
    ],
)
def test_where_a_watch_begins(query: dict[str, str], since: int | None, initial: bool) -> None:
    found = watch_options(TARGET, {**query, "timeoutSeconds": "9", "allowWatchBookmarks": "1"})
    assert (found.since, found.initial_events, found.seconds, found.bookmarks) == (since, initial, 9.0, True)


def test_watches_without_a_limit_last_half_an_hour_at_least() -> None:
    assert 1800 <= watch_options(TARGET, {}).seconds <= 3600
