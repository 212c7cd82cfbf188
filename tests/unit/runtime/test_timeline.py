"""A timeline keeps the beginning and the end, in bounded space."""

from __future__ import annotations

from datetime import timedelta

from metaflow_extensions.kubernetes_ext.runtime.timeline import Timeline
from tests.fakes import START


def test_entries_are_kept_in_order() -> None:
    timeline = Timeline()
    timeline.add(START, "created")
    timeline.add(START + timedelta(seconds=1.5), "runs")
    assert timeline.as_json() == [
        {"at": "2026-01-01T12:00:00.000+00:00", "what": "created"},
        {"at": "2026-01-01T12:00:01.500+00:00", "what": "runs"},
    ]


def test_of_very_many_the_middle_is_left_out_and_said_so() -> None:
    timeline = Timeline()
    for number in range(1000):
        timeline.add(START + timedelta(seconds=number), f"{number} " + "x" * 5000)
    told = [what.split()[0] for _, what in timeline.entries]
    assert told == [*map(str, range(40)), "(800", *map(str, range(840, 1000))]
    assert "800 more entries are left out" in timeline.entries[40][1]
    assert max(len(what) for _, what in timeline.entries) == 1000
