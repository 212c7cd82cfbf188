"""Which failures are the cluster's doing, and how often it may."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.starting_again import after_restarts, starts_again, words


def failed(category: Category, rank: int | None = 1, phase: Phase = Phase.FAILED, is_retryable: bool = True) -> WorkloadStatus:
    failure = Failure(
        category=category, summary="Worker 0 was evicted.", resolution="Run it again.", rank=rank, is_retryable=is_retryable
    )
    return WorkloadStatus(phase=phase, size=2, failure=failure)


@pytest.mark.parametrize("category", list(Category))
def test_only_what_the_cluster_did(category: Category) -> None:
    ours = {Category.EVICTED, Category.PREEMPTED, Category.NODE_LOST, Category.UNSCHEDULABLE}
    assert starts_again(failed(category), 0, 3) == (category in ours)


def test_what_was_given_up_or_killed_does_not_start_again() -> None:
    assert not starts_again(failed(Category.UNSCHEDULABLE, rank=None), 0, 3)
    assert not starts_again(failed(Category.UNSCHEDULABLE, is_retryable=False), 0, 3)
    assert not starts_again(failed(Category.EVICTED, phase=Phase.GONE), 0, 3)
    assert not starts_again(WorkloadStatus(phase=Phase.SUCCEEDED, size=2), 0, 3)


@pytest.mark.parametrize(("restarts", "most", "expected"), [(2, 3, True), (3, 3, False), (0, 0, False)])
def test_so_often(restarts: int, most: int, expected: bool) -> None:
    assert starts_again(failed(Category.EVICTED), restarts, most) is expected


def test_the_report_says_how_often_it_had_started_again() -> None:
    ended = after_restarts(failed(Category.EVICTED), 3, 3)
    assert ended.failure is not None
    assert ended.failure.resolution == "Run it again. It had started again 3 times before (max_restarts=3)."
    assert ended.restarts == 3
    assert after_restarts(failed(Category.EVICTED), 0, 0) == failed(Category.EVICTED)
    assert after_restarts(failed(Category.USER_ERROR), 1, 3).failure == failed(Category.USER_ERROR).failure


def test_a_line_between_two_starts() -> None:
    assert words(failed(Category.EVICTED), 1, 3) == "Worker 0 was evicted. All 2 ranks start again (restart 1 of 3)."
