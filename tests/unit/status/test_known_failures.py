"""What is known to go wrong in other software of this kind: a gang of 1 control + 3 workers, observed once, and what must be said.

Each row names one such report; the tests of the modules go deeper.
"""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase, WorkloadStatus
from tests.builders_objects import (
    condition,
    make_event,
    make_gang_pods,
    make_job,
    make_jobset,
    make_pod,
    make_queued,
    observe,
    record,
)

FAILED = condition("Failed", reason="FailedJobs", message="jobset failed (first failed job: js-1-control-0)", at=12)
ZEROS = {"control": {}, "worker": {}}
QUOTA = condition("QuotaReserved", "False", "Pending", "insufficient unused quota for cpu in flavor default, 1 more needed")
REFUSED = make_event("JobCreationFailed", 'job "js-1-worker-0" creation failed with error: Invalid value: "b c"', at=5)


def gang(**failing: Any) -> list[Any]:
    """Three ranks that run, and worker 1 as said."""
    return [make_pod("control"), make_pod("worker", 0), make_pod("worker", 1, **failing), make_pod("worker", 2)]


def killed_control() -> list[Any]:
    """By the JobSet, after worker 2 had failed with exit code 3."""
    control = record(
        make_pod("control"),
        make_pod("control", deleting_at=12),
        make_pod("control", phase="Failed", exit_code=137, deleting_at=12, finished_at=14),
        at=11,
    )
    culprit = record(make_pod("worker", 2), make_pod("worker", 2, "Failed", exit_code=3, finished_at=10), at=10)
    return [control, make_pod("worker", 0), make_pod("worker", 1), culprit]


@pytest.mark.parametrize(
    ("observation", "category", "rank", "words"),
    [
        pytest.param(
            observe(
                make_jobset(FAILED),
                [make_pod("control", phase="Failed", exit_code=137, reason="OOMKilled", node="n-7"), *gang()[1:]],
            ),
            "out_of_memory",
            0,
            ("Control (rank 0, pod js-1-control-0-0-abcde on n-7)", "exit code 137"),
            id="control out of memory",
        ),
        pytest.param(
            observe(
                make_jobset(FAILED),
                gang(phase="Failed", pod_reason="Evicted", pod_message="The node was low on resource: memory."),
            ),
            "evicted",
            2,
            ("evicted", "The node was low on resource: memory."),
            id="evicted, without a container status",
        ),
        pytest.param(
            observe(
                make_jobset(FAILED),
                gang(phase="Failed", pod_reason="DeadlineExceeded", exit_code=137, activeDeadlineSeconds=60),
            ),
            "deadline",
            2,
            ("timed out after 60 s",),
            id="a deadline is not out of memory, though its exit code is 137",
        ),
        pytest.param(
            observe(make_jobset(FAILED), killed_control()),
            "user_error",
            3,
            ("Worker 2", "exit code 3"),
            id="control was only killed because of worker 2",
        ),
        pytest.param(
            observe(make_jobset(FAILED), gang(phase="Failed", exit_code=137, reason="OOMKilled")),
            "out_of_memory",
            2,
            ("Worker 1 (rank 2,",),
            id="a worker out of memory",
        ),
        pytest.param(
            observe(make_jobset(status={"conditions": [FAILED]}), gang(phase="Failed", exit_code=3)),
            "user_error",
            2,
            ("exit code 3",),
            id="Failed without replicatedJobsStatus",
        ),
    ],
)
def test_who_failed_and_why(observation: Observation, category: str, rank: int, words: tuple[str, ...]) -> None:
    status = jobset_status(observation)
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert (status.failure.category.value, status.failure.rank) == (category, rank)
    for word in words:
        assert word in status.failure.summary


RUNS = WorkloadStatus(phase=Phase.RUNNING, size=4)


@pytest.mark.parametrize(
    ("observation", "previous", "phase", "words"),
    [
        pytest.param(
            observe(make_jobset(suspend=True, counters=ZEROS, labels={"kueue.x-k8s.io/queue-name": "lq"}), admission=make_queued(QUOTA)),
            None,
            Phase.QUEUED,
            "insufficient unused quota",
            id="suspended, all counters zero",
        ),
        pytest.param(observe(make_jobset(counters=ZEROS)), RUNS, Phase.RUNNING, "", id="all counters zero for many polls"),
        pytest.param(
            observe(make_jobset(counters=ZEROS), [make_pod("control", phase="Succeeded", exit_code=0)]),
            None,
            Phase.STARTING,
            "1 of 4 ranks",
            id="control has succeeded, workers are not created yet",
        ),
        pytest.param(
            observe(make_jobset(status={}), events=[REFUSED], at=20), None, Phase.PENDING, 'Invalid value: "b c"', id="no status at all"
        ),
        pytest.param(
            observe(make_jobset(counters={"control": {"active": 1}, "worker": {"active": 3}}, counters_key="ReplicatedJobsStatus")),
            None,
            Phase.STARTING,
            "",
            id="the old name of the counters",
        ),
        pytest.param(observe(make_jobset(condition("Completed", "False")), gang()), None, Phase.RUNNING, "", id="Completed False"),
        pytest.param(
            observe(
                make_jobset(counters={"control": {"active": 1}, "worker": {"active": 3}}),
                make_gang_pods("Pending", node="", conditions=[condition("PodScheduled", "False", "Unschedulable", "0/2 nodes are available: 2 Insufficient cpu.")]),
            ),
            None,
            Phase.STARTING,
            "have no node",
            id="active, and all pending",
        ),
        *(
            pytest.param(observe(make_jobset(), gang(phase="Pending", waiting=reason)), None, Phase.STARTING, "Worker 1 (rank 2,", id=reason)
            for reason in ("ImagePullBackOff", "ErrImageNeverPull", "CreateContainerConfigError", "InvalidImageName")
        ),
        pytest.param(
            observe(make_jobset(condition("Strange", reason="New")), gang(phase="Odd")), None, Phase.STARTING, "", id="an unknown phase and condition"
        ),
        pytest.param(
            observe(make_jobset(), [*gang(deleting_at=5), make_pod("worker", 1, "Pending", suffix="again", created_at=6)]),
            None,
            Phase.STARTING,
            "worker 1",
            id="two pods of one rank: the newer one counts",
        ),
    ],
)  # fmt: skip
def test_what_is_not_over(observation: Observation, previous: WorkloadStatus | None, phase: Phase, words: str) -> None:
    status = jobset_status(observation, previous)
    assert (status.phase, status.failure) == (phase, None)
    if words:
        assert status.waiting is not None
        assert words in status.waiting.summary + status.waiting.detail


def test_zeros_and_then_failed_is_failed() -> None:
    settling = jobset_status(observe(make_jobset(counters=ZEROS), jobs=[make_job()]), RUNS)
    end = jobset_status(observe(make_jobset(FAILED, counters=ZEROS)), settling)
    assert (settling.phase, end.phase) == (Phase.RUNNING, Phase.FAILED)


def test_an_object_that_vanished_is_gone_and_no_success() -> None:
    status = jobset_status(observe(None), RUNS)
    assert status.phase is Phase.GONE
    assert status.failure is not None
    assert "deleted by someone else" in status.failure.summary
