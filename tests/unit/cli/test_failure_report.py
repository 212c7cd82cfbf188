"""The words after a failed workload."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from metaflow_extensions.kubernetes_ext.cli import failure_report
from metaflow_extensions.kubernetes_ext.cli.rank_lines import ranges
from metaflow_extensions.kubernetes_ext.cli.traceback_lines import traceback_end
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, RankStatus, WorkloadStatus


def failed(size: int, *ranks: RankStatus, **fields: Any) -> WorkloadStatus:
    failure = Failure(category=Category.USER_ERROR, summary="Worker 1 failed.", resolution="Correct it.", **fields)
    return WorkloadStatus(phase=Phase.FAILED, size=size, ranks=ranks, failure=failure)


def test_a_plain_step_has_cause_last_lines_and_what_to_do() -> None:
    assert failure_report.lines(failed(1, last_lines=("  a", "b"))) == [
        "Worker 1 failed.",
        "Category user_error, @retry applies.",
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
    assert failure_report.lines(failed(4, *ranks))[2:-1] == [
        "The ranks:",
        "|   rank 2 (worker) on n2: failed (Error, exit code 3)",
        "|   rank 0 (control) on n1: was running, stopped because of it",
        "|   rank 1 (worker): was stopped because of it",
        "|   rank 3 (worker) on n2: succeeded",
    ]


def test_events_stand_before_the_ranks_as_far_as_there_is_room() -> None:
    events = ("Unhealthy: probe failed", "Evicted: low on memory")
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed", exit_code=rank) for rank in range(64))
    assert failure_report.lines(failed(1, events=events))[2:-1] == [f"Event {line}" for line in events]
    full = failure_report.lines(failed(64, *ranks, last_lines=("a",) * 80, events=events))
    assert len(full) == 25
    assert full.index("Event Evicted: low on memory") == full.index("The ranks:") - 1


def test_a_long_line_is_cut() -> None:
    lines = failure_report.lines(failed(1, last_lines=("x" * 5000, "y" * 300)))
    assert lines[3:5] == ["|   " + "x" * 296 + " ...", "|   " + "y" * 296 + " ..."]
    assert failure_report.lines(failed(1, last_lines=("y" * 296,)))[3] == "|   " + "y" * 296


def test_a_large_gang_stays_short() -> None:
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed") for rank in range(100))
    lines = failure_report.lines(failed(100, *ranks, last_lines=tuple(map(str, range(80)))))
    assert len(lines) <= 25
    assert "|   ranks 0-99 (100 workers): failed" in lines


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


def test_ranks_of_equal_fate_share_a_line_in_a_large_gang() -> None:
    ranks = (
        RankStatus(role="control", rank=0, phase="Running", node="n0"),
        *(RankStatus(role="worker", rank=rank, phase="Failed", is_collateral=True, node=f"n{rank}") for rank in (1, 2)),
        RankStatus(role="worker", rank=3, phase="Failed", reason="Error", exit_code=3, node="n3"),
        *(RankStatus(role="worker", rank=rank, phase="Running", node=f"n{rank % 8}") for rank in range(4, 64)),
    )
    assert failure_report.lines(failed(64, *ranks, rank=3))[2:-1] == [
        "The ranks:",
        "|   rank 3 (worker) on n3: failed (Error, exit code 3)",
        "|   rank 0 (control) on n0: was running, stopped because of it",
        "|   ranks 1-2 (2 workers) on 2 nodes: were stopped because of it",
        "|   ranks 4-63 (60 workers) on 8 nodes: were running, stopped because of it",
    ]


def test_many_different_fates_are_counted() -> None:
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed", exit_code=rank) for rank in range(64))
    assert len(failure_report.lines(failed(64, *ranks, last_lines=("a",) * 80), {1: ("b",) * 9})) <= 25
    assert "|   and 56 more ranks" in failure_report.lines(failed(64, *ranks))


def test_ranges_of_ranks_stay_short() -> None:
    assert ranges([5, 1, 2, 3, 7]) == "1-3, 5, 7"
    assert ranges(range(0, 64, 2)) == "0, 2, 4, 6, ..."


def test_when_it_ran_is_told() -> None:
    start = datetime(2026, 1, 2, 12, 0, 4, tzinfo=timezone.utc)
    ran = RankStatus(role="worker", rank=1, phase="Failed", started_at=start, finished_at=start + timedelta(seconds=34))
    told = failure_report.lines(failed(2, ran, rank=1, is_retryable=False))[1]
    assert told == "Category user_error, @retry does not apply. It ran for 34 s, from 12:00:04 to 12:00:38 UTC."
    assert failure_report.lines(failed(2, at=start))[1].endswith("It happened at 12:00:04 UTC.")


DEEP = [line for depth in range(20) for line in (f'  File "f.py", line {depth}, in f', f"    g({depth})", "    ^^^^")]


def test_a_traceback_is_shown_by_its_last_frames() -> None:
    told = ("hello", "Traceback (most recent call last):", *DEEP, "ValueError: wrong", "", "bye", *("noise",) * 20)
    lines = failure_report.lines(failed(1, exit_code=1, last_lines=told))
    assert lines[2:-1] == [
        "The end of its traceback:",
        *(f"|   {line}" for depth in (16, 17, 18, 19) for line in (f'  File "f.py", line {depth}, in f', f"    g({depth})")),
        "|   ValueError: wrong",
    ]


def test_a_traceback_that_did_not_end_the_program_is_not_its_cause() -> None:
    told = ("Traceback (most recent call last):", *DEEP[:2], "ValueError: caught", "", "then it crashed")
    assert "|   then it crashed" in failure_report.lines(failed(1, exit_code=139, last_lines=told))


def test_of_chained_tracebacks_the_last_is_shown_and_one_without_its_exception_is_none() -> None:
    one = ["Traceback (most recent call last):", *DEEP[:2], "KeyError: 1"]
    two = ["Traceback (most recent call last):", *DEEP[3:5], "ValueError: 2"]
    chained = [*one, "", "During handling of the above exception, another exception occurred:", "", *two]
    assert traceback_end(chained, 10) == [*DEEP[3:5], "ValueError: 2"]
    assert traceback_end(one[:-1], 10) == []
    assert traceback_end([f"    {line}" for line in two], 10) == [*DEEP[3:5], "ValueError: 2"]


def test_the_beginning_of_a_traceback_may_be_missing() -> None:
    assert traceback_end(["    code of a frame", *DEEP[:2], "KeyError: 1", ""], 10) == [*DEEP[:2], "KeyError: 1"]
    assert traceback_end(["no traceback", "at all"], 10) == []
