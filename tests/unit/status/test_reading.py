"""Objects of any shape can be read; what is not what it should be reads as absent."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.reading import (
    Condition,
    conditions,
    deletion_requested_at,
    dig,
    false_condition,
    integer,
    mappings,
    moment,
    text,
    true_condition,
)

NOON = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("2026-11-30T12:00:00Z", NOON, id="metav1.Time"),
        pytest.param("2026-11-30T12:00:00.500000Z", NOON + timedelta(milliseconds=500), id="MicroTime"),
        pytest.param("2026-11-30T13:00:00+01:00", NOON, id="another zone"),
        pytest.param("2026-11-30T12:00:00", NOON, id="no zone is UTC"),
        pytest.param("0001-01-01T00:00:00Z", None, id="the zero of Go"),
        pytest.param("9999-12-31T23:59:59Z", None, id="too far to calculate with"),
        pytest.param("noon", None, id="no time"),
        pytest.param(None, None, id="null"),
        pytest.param(7, None, id="a number"),
    ],
)
def test_moment(written: Any, expected: datetime | None) -> None:
    assert moment({"t": written}, "t") == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (3, 3),
        ("3", 3),
        (3.0, 3),
        (True, None),
        ("x", None),
        (None, None),
        ([3], None),
        (float("inf"), None),
        (float("nan"), None),
    ],
)
def test_integer(written: Any, expected: int | None) -> None:
    assert integer({"n": written}, "n") == expected


@pytest.mark.parametrize(("written", "expected"), [("a", "a"), (3, "3"), (None, ""), (True, ""), (["a"], ""), ({}, "")])
def test_text(written: Any, expected: str) -> None:
    assert text({"s": written}, "s") == expected


@pytest.mark.parametrize("obj", [None, 3, "x", [], {}, {"a": None}, {"a": "x"}, {"a": [1]}, {"a": {"b": None}}])
def test_missing_steps_are_absent(obj: Any) -> None:
    assert dig(obj, "a", "b", "c") is None
    assert mappings(obj, "a", "b") == []


def test_lists_keep_their_mappings_only() -> None:
    assert mappings({"a": [{"x": 1}, "y", None, {"z": 2}]}, "a") == [{"x": 1}, {"z": 2}]


def with_conditions(*entries: Any) -> dict[str, Any]:
    return {"status": {"conditions": list(entries)}}


@pytest.mark.parametrize("status", ["False", "Unknown", "true", True, None, 1])
def test_only_the_word_true_is_true(status: Any) -> None:
    obj = with_conditions({"type": "Failed", "status": status})
    assert conditions(obj) == {}
    assert true_condition(obj, "Failed") is None


def test_conditions() -> None:
    obj = with_conditions(
        {"type": "Failed", "status": "True", "reason": "R", "message": "M", "lastTransitionTime": "2026-11-30T12:00:00Z"},
        {"type": "Suspended", "status": "False"},
        "odd",
    )
    found = Condition(type="Failed", reason="R", message="M", since=NOON)
    assert (conditions(obj), true_condition(obj, "Failed")) == ({"Failed": found}, found)
    assert false_condition(obj, "Suspended") == Condition(type="Suspended")
    assert false_condition(obj, "Failed") is None


def test_a_deletion_was_asked_for_a_grace_period_before_it_is_due() -> None:
    meta = {"deletionTimestamp": "2026-11-30T12:00:30Z", "deletionGracePeriodSeconds": 30}
    assert deletion_requested_at({"metadata": meta}) == NOON
    assert deletion_requested_at({"metadata": {**meta, "deletionGracePeriodSeconds": 10**30}}) is not None
