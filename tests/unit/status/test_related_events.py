"""Which Events stand in a report beside the failure."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.related_events import related_events

AT = "2026-01-02T03:04:{:02}Z"


def event(reason: str, message: str, second: int, kind: str = "Warning", uid: str = "u1", **fields: Any) -> dict[str, Any]:
    involved = {"kind": "Pod", "name": "p", "uid": uid}
    return {
        "reason": reason,
        "message": message,
        "type": kind,
        "involvedObject": involved,
        "lastTimestamp": AT.format(second),
    } | fields


EVICTED = event("Evicted", "The node was low on resource: memory. ", 7)


def test_warnings_about_this_pod_in_their_order() -> None:
    events = [
        EVICTED,
        event("Started", "Started container main", 2, kind="Normal"),
        event("Unhealthy", "Readiness probe failed:\n  HTTP 500", 5, count=4),
        event("Evicted", "another pod", 6, uid="u2"),
        event("Preempted", "Preempted by pod x on node n", 8, kind="Normal"),
    ]
    assert related_events(events, "u1", "Worker 1 failed.") == (
        "Unhealthy: Readiness probe failed: HTTP 500 (4 times)",
        "Evicted: The node was low on resource: memory.",
        "Preempted: Preempted by pod x on node n",
    )


def test_what_is_said_already_or_was_over_before_it_ran_is_left_out() -> None:
    scheduling = event("FailedScheduling", "0/2 nodes are available", 1)
    started = datetime(2026, 1, 2, 3, 4, 2, tzinfo=timezone.utc)
    assert related_events([scheduling, EVICTED], "u1", "It failed.", started) == (
        "Evicted: The node was low on resource: memory.",
    )
    assert related_events([EVICTED], "u1", "Worker 1 was evicted: The node was low on resource: memory.") == ()


def test_only_the_last_of_many_and_each_text_once() -> None:
    events = [event("BackOff", f"restarting {second // 2}", second) for second in range(10)]
    assert related_events(events, "u1", "") == ("BackOff: restarting 2", "BackOff: restarting 3", "BackOff: restarting 4")


@pytest.mark.parametrize(
    "broken", [{}, {"involvedObject": {"uid": "u1"}, "type": "Warning"}, {"involvedObject": None, "message": 3}]
)
def test_an_event_that_lacks_all_is_no_trouble(broken: dict[str, Any]) -> None:
    assert related_events([broken], "u1", "") == ()
    assert related_events([EVICTED], "", "") == ()
