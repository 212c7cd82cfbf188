"""How a workload is remembered that nobody follows any more."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.status.ended_early import interrupted, not_followed
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, RankStatus, Waiting, WorkloadStatus
from tests.fakes import START

RUNNING = tuple(RankStatus(role="worker", rank=rank, phase="Running", ready=True) for rank in range(2))
NO_NODE = Waiting(category=Category.UNSCHEDULABLE, summary="No node fits.")
ORDINARY = Waiting(category=Category.UNKNOWN, summary="Waits for the ranks.", is_ordinary=True)


@pytest.mark.parametrize(
    ("status", "when"),
    [
        pytest.param(WorkloadStatus(phase=Phase.STARTING, size=3, ranks=RUNNING), "while 2 of 3 ranks ran.", id="a gang"),
        pytest.param(WorkloadStatus(phase=Phase.RUNNING, size=1, ranks=RUNNING[:1]), "while it ran.", id="a plain step"),
        pytest.param(WorkloadStatus(phase=Phase.QUEUED, size=1), "while it was queued.", id="one that did not run"),
        pytest.param(
            WorkloadStatus(phase=Phase.STARTING, size=2, waiting=NO_NODE), "waited: No node fits.", id="with a reason"
        ),
        pytest.param(WorkloadStatus(phase=Phase.STARTING, size=2, waiting=ORDINARY), "while 0 of 2 ranks ran.", id="as usual"),
    ],
)
def test_an_interrupted_run_says_in_what_state_its_workload_was(status: WorkloadStatus, when: str) -> None:
    ended = interrupted(status, "JobSet", "SIGTERM", START)
    assert ended.failure is not None
    assert (ended.phase, ended.failure.category, ended.failure.reason) == (Phase.GONE, Category.GONE, "Interrupted")
    assert ended.failure.summary.startswith("The run was interrupted (SIGTERM), and the JobSet deleted while ")
    assert ended.failure.summary.endswith(when)
    assert ended.ranks == status.ranks


def test_a_failure_of_its_own_is_not_hidden_by_the_interruption() -> None:
    failed = WorkloadStatus(
        phase=Phase.RUNNING, size=1, failure=Failure(category=Category.USER_ERROR, summary="Failed.", resolution="")
    )
    assert interrupted(failed, "JobSet", "SIGINT", START) is failed


@pytest.mark.parametrize(
    ("error", "is_refused", "category"),
    [
        pytest.param("pods is forbidden: exceeded quota: limit", True, Category.QUOTA, id="quota"),
        pytest.param("admission webhook denied the request", True, Category.REJECTED, id="webhook"),
        pytest.param("Not allowed to create jobsets", False, Category.UNKNOWN, id="no permission"),
    ],
)
def test_what_could_not_be_submitted_has_the_clusters_word_as_its_cause(
    error: str, is_refused: bool, category: Category
) -> None:
    status = not_followed(error, is_refused=is_refused, is_retryable=False, size=4, at=START)
    assert status.failure == Failure(category=category, summary=error, resolution="", is_retryable=False, at=START)
    assert (status.phase, status.size) == (Phase.FAILED, 4)
