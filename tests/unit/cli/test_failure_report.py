"""The words after a failed workload."""

from __future__ import annotations

from typing import Any

from metaflow_extensions.kubernetes_ext.cli import failure_report
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, RankStatus, WorkloadStatus


def failed(size: int, *ranks: RankStatus, **fields: Any) -> WorkloadStatus:
    failure = Failure(category=Category.USER_ERROR, summary="Worker 1 failed.", resolution="Correct it.", **fields)
    return WorkloadStatus(phase=Phase.FAILED, size=size, ranks=ranks, failure=failure)


def test_a_plain_step_has_cause_last_lines_and_what_to_do() -> None:
    assert failure_report.lines(failed(1, last_lines=("  a", "b"))) == [
        "Worker 1 failed.",
        "Its last lines:",
        "|     a",
        "|   b",
        "Correct it.",
    ]


def test_a_gang_has_a_line_for_every_rank_the_failed_ones_first() -> None:
    ranks = (
        RankStatus(role="control", rank=0, phase="Running", node="n1"),
        RankStatus(role="worker", rank=1, phase="Failed", reason="Error", exit_code=143, is_collateral=True),
        RankStatus(role="worker", rank=2, phase="Failed", reason="Error", exit_code=3, node="n2"),
        RankStatus(role="worker", rank=3, phase="Succeeded", node="n2"),
    )
    assert failure_report.lines(failed(4, *ranks))[1:-1] == [
        "The ranks:",
        "|   rank 0 (control): was running on n1, stopped because of it",
        "|   rank 2 (worker): failed (Error, exit code 3) on n2",
        "|   rank 1 (worker): was stopped because of it",
        "|   rank 3 (worker): succeeded on n2",
    ]


def test_a_large_gang_stays_short() -> None:
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed") for rank in range(100))
    lines = failure_report.lines(failed(100, *ranks, last_lines=tuple(map(str, range(80)))))
    assert len(lines) <= 25
    assert "|   and 92 more ranks" in lines


def test_without_a_failure_the_phase_is_said() -> None:
    assert failure_report.lines(WorkloadStatus(phase=Phase.GONE, size=1)) == ["The workload ended as Gone."]


def test_the_cause_is_no_victim_of_itself() -> None:
    """A pod that was deleted from outside ends as all do that are told to stop."""
    rank = RankStatus(role="worker", rank=1, phase="Deleted", exit_code=143, reason="Error", is_collateral=True)
    lines = failure_report.lines(failed(2, RankStatus(role="control", rank=0, phase="Running"), rank, rank=1))
    assert "|   rank 1 (worker): deleted (Error, exit code 143)" in lines


def test_other_ranks_that_failed_are_heard_as_far_as_there_is_room() -> None:
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed") for rank in range(100))
    lines = failure_report.lines(failed(100, *ranks[:3], rank=0, last_lines=("a",)), {1: ("x", "y"), 2: ()})
    assert lines[-4:] == ["The last lines of rank 1:", "|   x", "|   y", "Correct it."]
    full = failure_report.lines(failed(100, *ranks, rank=0, last_lines=("a",) * 80), dict.fromkeys(range(1, 100), ("x",) * 9))
    assert len(full) <= 25
