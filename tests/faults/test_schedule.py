"""A seed is one schedule, for ever and everywhere: else a failing seed could not be run again."""

from __future__ import annotations

import pytest

from tests.faults.schedule import FAULTS, NOT_AT, TARGETS, Fault, scenario


def test_a_seed_is_always_the_same_schedule() -> None:
    assert str(scenario(7)) == str(scenario(7))
    assert len({str(scenario(seed)).partition(":")[2] for seed in range(50)}) > 45


def test_all_faults_ends_and_requests_are_drawn_and_none_that_makes_no_sense() -> None:
    drawn = [scenario(seed) for seed in range(400)]
    faults = [fault for one in drawn for fault in one.faults]
    assert {fault.kind for fault in faults} == set(FAULTS)
    assert {fault.target for fault in faults} == set(TARGETS)
    assert {one.end for one in drawn} == {"succeeds", "fails", "recovers", "interrupted"}
    assert not [fault for fault in faults if fault.target.split()[0] in NOT_AT.get(fault.kind, ())]


@pytest.mark.parametrize(
    ("target", "number", "is_met"),
    [
        pytest.param("list pods", 2, True, id="the first"),
        pytest.param("list pods", 3, True, id="the last"),
        pytest.param("list pods", 1, False, id="before"),
        pytest.param("list pods", 4, False, id="after"),
        pytest.param("list jobs", 2, False, id="another resource"),
    ],
)
def test_a_fault_meets_requests_by_their_number(target: str, number: int, is_met: bool) -> None:
    assert Fault("500", "list pods", 2, count=2).meets(target, number) is is_met
