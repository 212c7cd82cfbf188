"""How a client learns that a workload stands still: seldom asked, never blocked, and right about who is who."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.runtime.stall_watch import StallWatch, collect
from metaflow_extensions.kubernetes_ext.status.model import Phase, RankStatus, Stalled, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.stacks import Frame
from tests.fakes import FakeClock

LIMIT = 600.0


class Ranks:
    """A mailbox and those who write into it: (state, minutes in it, line) by rank; those that are left out never answer."""

    def __init__(self, clock: FakeClock, **states: tuple[str, float, int]) -> None:
        self._clock = clock
        self.states = {int(name[1:]): state for name, state in states.items()}
        self.pods = {rank: f"u{rank}" for rank in range(4)}
        self.token = self.somebody_else = ""
        self.asked, self.reads = 0, 0

    def ask(self, token: str) -> None:
        self.token, self.asked = self.somebody_else or token, self.asked + 1

    def read(self, ranks: Sequence[int]) -> Mapping[int, Mapping[str, Any]]:
        self.reads += len(ranks)
        return {rank: self._record(rank) for rank in ranks if rank in self.states}

    def _record(self, rank: int) -> dict[str, Any]:
        state, minutes, line = self.states[rank]
        since = (self._clock.now() - timedelta(minutes=minutes)).isoformat()
        stack = [["flow.py", line, "train", ""]]
        return {"pod_uid": self.pods[rank], "state": state, "since": since, "busy": 0, "answers": self.token, "stack": stack}


def running(*phases: str) -> WorkloadStatus:
    ranks = [
        RankStatus(
            role="", rank=rank, pod_uid=f"u{rank}", phase=phase, finished_at=FakeClock().now() if phase == "Succeeded" else None
        )
        for rank, phase in enumerate(phases or ["Running"] * 4)
    ]
    return WorkloadStatus(phase=Phase.RUNNING, size=4, ranks=tuple(ranks))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


Make = Callable[..., tuple[StallWatch, Ranks, list[Stalled | None]]]


@pytest.fixture
def make(clock: FakeClock) -> Make:
    def made(**states: tuple[str, float, int]) -> tuple[StallWatch, Ranks, list[Stalled | None]]:
        ranks, heard = Ranks(clock, **states), list[Stalled | None]()
        return StallWatch(ranks, LIMIT, patience=35, clock=clock, on_change=heard.append), ranks, heard

    return made


STILL = {f"r{rank}": ("still", 11, 10) for rank in range(4)}


def test_a_healthy_gang_costs_two_reads_a_look(make: Make) -> None:
    watch, ranks, heard = make()
    watch.seen(running())
    for _ in range(10):
        watch.look()
    assert (ranks.reads, ranks.asked, heard) == (20, 0, [])


def test_a_gang_that_stands_still_and_goes_on(make: Make) -> None:
    watch, ranks, heard = make(**{**STILL, "r2": ("still", 11, 20)})
    assert watch.seen(running()) is None
    watch.look()
    found = watch.seen(running())
    assert found is not None
    assert "rank 2 stands at flow.py:20 in train, the other 3 stand at flow.py:10" in found.summary
    ranks.states = dict.fromkeys(range(4), ("moving", 0, 10))
    watch.look()
    assert watch.seen(running()) is None
    assert heard == [found, None]


def test_while_one_computes_and_others_wait_they_are_asked_less_and_less_often(make: Make, clock: FakeClock) -> None:
    watch, ranks, heard = make(**{**STILL, "r3": ("moving", 0, 10)})
    watch.seen(running())
    for _ in range(120):
        watch.look()
        clock.sleep(60)
    assert heard == []
    assert ranks.asked <= 16  # in two hours


def test_an_answer_to_somebody_else_s_question_is_an_answer(make: Make) -> None:
    watch, ranks, heard = make(**STILL)
    ranks.somebody_else = "another token"
    watch.seen(running())
    watch.look()
    assert heard[0] is not None
    assert "all 4 stand at" in heard[0].summary


def test_a_rank_that_does_not_answer_is_told_when_the_others_stand_still(make: Make) -> None:
    states = dict(STILL)
    del states["r0"]
    watch, _, heard = make(**states)
    watch.seen(running())
    watch.look()
    assert heard[0] is not None
    assert "rank 0 does not answer, the other 3 stand at flow.py:10 in train" in heard[0].summary


def test_a_rank_whose_pod_has_ended_is_not_asked(make: Make, clock: FakeClock) -> None:
    watch, _, heard = make(**{**STILL, "r1": ("moving", 0, 10)})
    clock.sleep(3600)
    watch.seen(running("Running", "Succeeded", "Running", "Running"))
    watch.look()
    assert heard[0] is not None
    assert "rank 1 has ended the step's code, the other 3 stand at" in heard[0].summary


def test_records_of_an_earlier_pod_of_the_same_attempt_count_nothing(make: Make) -> None:
    watch, ranks, heard = make(**STILL)
    ranks.pods = dict.fromkeys(range(4), "of before")
    watch.seen(running())
    watch.look()
    assert (ranks.asked, heard) == (0, [])


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.QUEUED, Phase.SUCCEEDED])
def test_only_what_runs_can_stand_still(make: Make, phase: Phase) -> None:
    watch, _, heard = make(**STILL)
    watch.seen(running())
    watch.look()
    status = WorkloadStatus(phase=phase, size=4)
    assert watch.seen(status) is None
    watch.look()
    assert [found is None for found in heard] == [False, True]


def test_those_who_do_not_answer_in_time_are_looked_up_in_their_logs(clock: FakeClock) -> None:
    ranks = Ranks(clock, r0=("moving", 0, 10))
    frame = Frame("flow.py", 3, "train")
    found = collect(ranks, running().ranks, 35, clock, lambda rank: (frame,) if rank.rank == 2 else ())
    assert [(one.rank, one.state, one.stack) for one in found[1:]] == [
        (1, "silent", ()),
        (2, "silent", (frame,)),
        (3, "silent", ()),
    ]
    assert found[0].state == "moving"
    assert clock.monotonic() < 45
