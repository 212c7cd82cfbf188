"""A status survives being written as JSON and read again, also by another version."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.status.model import (
    Category,
    Failure,
    Phase,
    RankStatus,
    Stalled,
    Waiting,
    WorkloadStatus,
)
from metaflow_extensions.kubernetes_ext.status.record import MOST_RANKS, as_json, bounded, status_of
from tests.fakes import START

FAILURE = Failure(
    category=Category.OUT_OF_MEMORY, summary="Worker 0 ran out of memory.", resolution="Raise memory.", role="worker", rank=1,
    pod="p1", node="n1", exit_code=137, reason="OOMKilled", is_retryable=False, at=START, last_lines=("one", "two"),
)  # fmt: skip
RANKS = (
    RankStatus(role="control", rank=0, pod="p0", pod_uid="u0", phase="Failed", exit_code=143, is_collateral=True),
    RankStatus(role="worker", rank=1, index=0, phase="Failed", exit_code=137, reason="OOMKilled", restarts=1, started_at=START),
)
FAILED = WorkloadStatus(phase=Phase.FAILED, size=2, ranks=RANKS, failure=FAILURE, restarts=1, reason="FailedJobs", message="m")
QUEUED = WorkloadStatus(
    phase=Phase.QUEUED,
    size=2,
    waiting=Waiting(category=Category.QUOTA, summary="Waits.", detail="For long.", since=START, is_hopeless=True),
)
STALLED = WorkloadStatus(phase=Phase.RUNNING, size=2, stalled=Stalled(since=START, summary="No rank ...", lines=("rank 1: x",)))


@pytest.mark.parametrize("status", [FAILED, QUEUED, STALLED, WorkloadStatus(phase=Phase.SUCCEEDED, size=1)])
def test_what_was_written_is_read(status: WorkloadStatus) -> None:
    assert status_of(json.loads(json.dumps(as_json(status)))) == status


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param({}, WorkloadStatus(phase=Phase.PENDING, size=0), id="nothing"),
        pytest.param({"phase": "Nova", "size": "3", "more": 1}, WorkloadStatus(phase=Phase.PENDING, size=3), id="unknown values"),
        pytest.param(
            {"phase": "Failed", "failure": {"category": "new_one", "summary": "s", "last_lines": 3}},
            WorkloadStatus(
                phase=Phase.FAILED, size=0, failure=Failure(category=Category.UNKNOWN, summary="s", resolution="")
            ),
            id="a category of later versions",
        ),
    ],
)  # fmt: skip
def test_what_another_version_has_written_is_read(stored: dict[str, object], expected: WorkloadStatus) -> None:
    assert status_of(stored) == expected


def test_a_large_gang_is_kept_with_the_ranks_that_tell_most() -> None:
    ranks = tuple(RankStatus(role="worker", rank=rank, phase="Failed", is_collateral=rank != 900) for rank in range(1000))
    failure = replace(FAILURE, rank=900, last_lines=tuple("x" * 10_000 for _ in range(500)))
    kept = bounded(WorkloadStatus(phase=Phase.FAILED, size=1000, ranks=ranks, failure=failure))
    assert [rank.rank for rank in kept.ranks] == [*range(MOST_RANKS - 1), 900]
    assert kept.size == 1000
    assert len(json.dumps(as_json(kept))) < 220_000
