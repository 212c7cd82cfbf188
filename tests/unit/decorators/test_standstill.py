"""When a rank counts as standing still."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.decorators.standstill import Sample, Standstill


def samples(*changes: dict[str, Any]) -> list[Sample]:
    """One each 10 s: what differs from the one before. `busy` and `others` are shares of a core since then."""
    values: dict[str, Any] = {"at": 0.0, "places": {"wait"}, "output": 0, "progress": 0, "own_cpu": 0.0, "others_cpu": 0.0}
    found = [dict(values)]
    for change in changes:
        change = dict(change)
        values["at"] += 10
        values["own_cpu"] += 10 * change.pop("busy", 0)
        values["others_cpu"] += 10 * change.pop("others", 0)
        found.append(dict(values, **change))
        values.update(change)
    return [Sample(**{**one, "places": frozenset(one["places"])}) for one in found]


@pytest.mark.parametrize(
    ("changes", "since"),
    [
        pytest.param([{}, {}, {}], 0, id="blocked at one place"),
        pytest.param([{}, {"output": 5}, {}], 20, id="it has written something"),
        pytest.param([{}, {"places": {"work"}}, {}], 20, id="it has come to another place"),
        pytest.param([{"busy": 1}, {"busy": 1}, {"busy": 1}], 0, id="busy at one place: it computes in C, or spins"),
        pytest.param(
            [{"places": {"a", "b"}, "busy": 1}, {"places": {"a"}, "busy": 1}, {"places": {"b"}, "busy": 1}],
            30,
            id="busy in a loop that has several lines",
        ),
        pytest.param(
            [{"places": {"sleep", "ask"}}, {"places": {"sleep"}}, {"places": {"ask"}}, {"places": {"sleep"}}],
            10,
            id="idle in a loop that asks and sleeps",
        ),
        pytest.param([{"others": 0.5}, {"others": 0.5}, {"others": 0.5}], 30, id="it waits for a process that computes"),
        pytest.param([{"others": 0.01}, {"others": 0.01}], 0, id="the others only look after the logs"),
        pytest.param([{"others": -3}], 0, id="one of the others has ended"),
        pytest.param([{"progress": 1}, {"progress": 2}, {}], 20, id="it has said that it gets on"),
        pytest.param(
            [{"progress": 1}, {"output": 9, "busy": 1, "places": {"x"}}, {"output": 99}],
            10,
            id="whoever has said so once is taken at its word",
        ),
    ],
)
def test_since_when_a_rank_stands_still(changes: list[dict[str, Any]], since: float) -> None:
    first, *rest = samples(*changes)
    still = Standstill(first)
    for sample in rest:
        still.see(sample)
    assert still.since == since


@pytest.mark.parametrize(("busy", "expected"), [(0.0, 0.0), (0.5, 0.5)])
def test_how_busy_it_has_been_since(busy: float, expected: float) -> None:
    first, *rest = samples({"output": 1, "busy": 1}, {"busy": busy}, {"busy": busy})
    still = Standstill(first)
    for sample in rest:
        still.see(sample)
    assert still.busy == pytest.approx(expected)
