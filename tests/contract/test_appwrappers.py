"""AppWrappers under their real controller, from their creation to their end. The development cluster has none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.contract import places, stories
from tests.contract.places import Place
from tests.contract.stories import QUICK, Story, When, in_phase, tell
from tests.contract.test_lifecycles import (
    FAILED,
    GONE,
    LONG,
    QUEUED,
    RUNNING,
    SUCCEEDED,
    End,
    check,
    check_in_order,
    check_read_again,
    delete_workload,
    gang,
    resume,
)

pytestmark = pytest.mark.real


@pytest.fixture
def place(real: places.Server) -> Iterator[Place]:
    with real.place(roles=places.RBAC_WITH_APPWRAPPERS) as found:
        yield found


@pytest.mark.parametrize(
    "story",
    [
        pytest.param(Story(size=0, command="echo one", fault_tolerance=QUICK), id="job"),
        pytest.param(gang(4, fault_tolerance=QUICK), id="gang of 4"),
    ],
)
def test_success(place: Place, story: Story) -> None:
    told = tell(place, story)
    check(told, End(phase=SUCCEEDED))
    check_in_order(told)
    ranks = check_read_again(told, story).ranks
    assert [(rank.rank, rank.phase, rank.exit_code) for rank in ranks] == [
        (rank, "Succeeded", 0) for rank in range(max(1, story.size))
    ]


def test_a_rank_that_fails_for_good_is_named(place: Place) -> None:
    told = tell(place, gang(3, LONG, {2: "exit 3"}, fault_tolerance=QUICK))
    check(told, End(phase=FAILED, category="user_error", role="worker", rank=2, exit_code=3, reason="Error"))


def test_the_rank_that_failed_in_the_last_try_is_named(place: Place) -> None:
    told = tell(place, gang(2, LONG, {1: "exit 3"}, fault_tolerance=replace(QUICK, retry_limit=1)))
    check(told, End(phase=FAILED, category="user_error", role="worker", rank=1, exit_code=3, reason="Error"))
    assert told.status.restarts == 1, told


def test_a_terminal_exit_code_ends_it_at_once(place: Place) -> None:
    tolerance = replace(QUICK, retry_limit=3, terminal_exit_codes=(3,))
    told = tell(place, gang(2, LONG, {0: "exit 3"}, fault_tolerance=tolerance))
    check(told, End(phase=FAILED, category="user_error", role="control", rank=0, exit_code=3, reason="Error"))
    assert told.status.restarts == 0, told


def suspend(play: stories.Play) -> None:
    play.patch({"spec": {"suspend": True}})


@pytest.mark.parametrize("size", [0, 2])
def test_created_suspended_then_resumed(place: Place, size: int) -> None:
    told = tell(place, Story(size=size, is_suspended=True, fault_tolerance=QUICK), When(in_phase(QUEUED), resume))
    check(told, End(phase=SUCCEEDED, through=(QUEUED, SUCCEEDED)))


def test_suspended_while_it_runs_then_resumed(place: Place) -> None:
    story = Story(size=2, command="sleep 6", fault_tolerance=QUICK)
    told = tell(place, story, When(in_phase(RUNNING), suspend), When(in_phase(QUEUED), resume))
    check(told, End(phase=SUCCEEDED, through=(RUNNING, QUEUED, RUNNING, SUCCEEDED)))


def test_deleted_by_someone_else(place: Place) -> None:
    told = tell(place, gang(2, LONG, fault_tolerance=QUICK), When(in_phase(RUNNING), delete_workload))
    check(told, End(phase=GONE, through=(RUNNING, GONE), category="gone", reason="Gone"))
