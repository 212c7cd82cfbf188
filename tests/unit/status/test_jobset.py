"""What must be said of a JobSet: the phase, and never more than is known. One row for each known way of getting it wrong."""

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

ZERO: dict[str, dict[str, int]] = {"worker": {}, "control": {}}
DISRUPTED = condition("DisruptionTarget", reason="DeletionByTaintManager", at=12)
FAILED = condition("Failed", reason="FailedJobs", message="jobset failed ... (first failed job: js-1-control-0)")
TARGET = condition("FailureTarget", reason="BackoffLimitExceeded")
FAIL_ON_DISRUPTION = {"podFailurePolicy": {"rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}


def before(phase: Phase, **fields: Any) -> WorkloadStatus:
    return WorkloadStatus(phase=phase, size=4, **fields)


@pytest.mark.parametrize(
    ("observation", "phase"),
    [
        pytest.param(observe(None, was_seen=False), Phase.PENDING, id="not seen yet"),
        pytest.param(observe(make_jobset(status={})), Phase.PENDING, id="no status yet"),
        pytest.param(observe(make_jobset(counters=ZERO)), Phase.PENDING, id="all counters zero, no pods yet"),
        pytest.param(observe(make_jobset(suspend=True, counters=ZERO)), Phase.QUEUED, id="suspended, all counters zero"),
        pytest.param(
            observe(make_jobset(condition("Suspended"), suspend=False)),
            Phase.QUEUED,
            id="resumed, but its condition lags behind",
        ),
        pytest.param(
            observe(make_jobset(suspend=True), make_gang_pods()), Phase.QUEUED, id="suspended while its pods still run"
        ),
        pytest.param(
            observe(make_jobset(condition("Suspended"), suspend=False), make_gang_pods()),
            Phase.RUNNING,
            id="its pods run, whatever the condition says",
        ),
        pytest.param(
            observe(make_jobset(condition("Suspended", "False"), suspend=False), make_gang_pods()),
            Phase.RUNNING,
            id="Suspended False stays for ever",
        ),
        pytest.param(
            observe(make_jobset(counters={"control": {"active": 1}, "worker": {"active": 1}}), make_gang_pods("Pending")),
            Phase.STARTING,
            id="active counts Pending",
        ),
        pytest.param(observe(make_jobset(), make_gang_pods()[:3]), Phase.STARTING, id="one rank has no pod yet"),
        pytest.param(observe(make_jobset(), make_gang_pods()), Phase.RUNNING, id="all four run"),
        pytest.param(observe(make_jobset(shape="s1"), make_gang_pods(shape="s1")), Phase.RUNNING, id="a Job per worker"),
        pytest.param(
            observe(make_jobset(), [make_pod("control", phase="Succeeded", exit_code=0)]),
            Phase.STARTING,
            id="control succeeded, workers not created yet",
        ),
        pytest.param(
            observe(make_jobset(), [make_pod("control", phase="Succeeded", exit_code=0), *make_gang_pods()[1:]]),
            Phase.RUNNING,
            id="control succeeded, workers still run",
        ),
        pytest.param(
            observe(make_jobset(status={}), make_gang_pods("Succeeded", exit_code=0)),
            Phase.SUCCEEDED,
            id="all pods succeeded, before any controller says so",
        ),
        pytest.param(
            observe(make_jobset(counters=ZERO), make_gang_pods("Succeeded", exit_code=0)[:3]),
            Phase.STARTING,
            id="three of four succeeded, the fourth not seen",
        ),
        pytest.param(observe(make_jobset(condition("Completed"))), Phase.SUCCEEDED, id="Completed, and no pods to see"),
        pytest.param(
            observe(make_jobset(condition("Completed", "False")), make_gang_pods()),
            Phase.RUNNING,
            id="Completed False is not done",
        ),
        pytest.param(
            observe(make_jobset(condition("Failed", "False")), make_gang_pods()),
            Phase.RUNNING,
            id="Failed False has not failed",
        ),
        pytest.param(observe(make_jobset(FAILED)), Phase.FAILED, id="Failed without replicatedJobsStatus"),
        pytest.param(observe(make_jobset(FAILED, condition("Completed"))), Phase.FAILED, id="Failed beats Completed"),
        pytest.param(
            observe(make_jobset(condition("StartupPolicyCompleted"), condition("Surprise")), make_gang_pods()),
            Phase.RUNNING,
            id="unknown conditions are not terminal",
        ),
        pytest.param(
            observe(make_jobset(), make_gang_pods(), jobs=[make_job(TARGET)]), Phase.FAILED, id="a Job's FailureTarget is final"
        ),
        pytest.param(
            observe(make_jobset(), make_gang_pods(), jobs=[make_job(condition("FailureTarget", "False"))]),
            Phase.RUNNING,
            id="FailureTarget False",
        ),
        pytest.param(
            observe(make_jobset(), make_gang_pods(), jobs=[make_job(TARGET, attempt=0), make_job(attempt=0, uid="new")]),
            Phase.FAILED,
            id="FailureTarget of one Job of several",
        ),
        pytest.param(
            observe(make_jobset(failure_policy={"maxRestarts": 1}), make_gang_pods(), jobs=[make_job(TARGET)]),
            Phase.RUNNING,
            id="FailureTarget with a restart left",
        ),
        pytest.param(
            observe(
                make_jobset(restarts=1, failure_policy={"maxRestarts": 1}),
                make_gang_pods(attempt=1),
                jobs=[make_job(TARGET, attempt=0)],
            ),
            Phase.RUNNING,
            id="FailureTarget of the attempt before",
        ),
        pytest.param(
            observe(
                make_jobset(restarts=1, failure_policy={"maxRestarts": 1}),
                make_gang_pods(attempt=1),
                jobs=[make_job(TARGET, attempt=1)],
            ),
            Phase.FAILED,
            id="FailureTarget in the last attempt",
        ),
        pytest.param(
            observe(make_jobset(deleting_at=15), make_gang_pods(deleting_at=16), jobs=[make_job(TARGET)]),
            Phase.RUNNING,
            id="FailureTarget while the JobSet is being deleted is no failure of its own",
        ),
        pytest.param(observe(None), Phase.GONE, id="404 after it was seen"),
        pytest.param(
            observe(make_jobset(restarts=1), make_gang_pods(attempt=0)), Phase.PENDING, id="only pods of the attempt before"
        ),
        pytest.param(
            observe(make_jobset(), make_gang_pods(attempt=1)),
            Phase.RUNNING,
            id="pods of a restart that the JobSet does not show yet",
        ),
        pytest.param(
            observe(make_jobset(), [*make_gang_pods(jobset="js-1")[:3], make_pod("worker", 2, jobset="other")]),
            Phase.STARTING,
            id="a pod of another JobSet is no rank",
        ),
        pytest.param(
            observe(make_jobset(), [*make_gang_pods()[:3], make_pod("worker", 3)]),
            Phase.STARTING,
            id="a pod beyond the gang is no rank",
        ),
        pytest.param(observe(make_jobset(groups={})), Phase.PENDING, id="no replicated jobs: never succeeded"),
        pytest.param(observe(make_jobset(groups={"worker": 0})), Phase.PENDING, id="no replicas: never succeeded"),
        pytest.param(
            observe(make_jobset(groups={"control": 1}), make_gang_pods("Succeeded", exit_code=0, groups={"control": 1})),
            Phase.SUCCEEDED,
            id="a gang of one",
        ),
    ],
)
def test_phase(observation: Observation, phase: Phase) -> None:
    status = jobset_status(observation)
    assert status.phase is phase
    assert (status.failure is not None) is (phase in (Phase.FAILED, Phase.GONE))


@pytest.mark.parametrize("key", ["replicatedJobsStatus", "ReplicatedJobsStatus"])
@pytest.mark.parametrize(
    ("counters", "phase"),
    [
        pytest.param(
            {"control": {"active": 1, "ready": 1}, "worker": {"active": 1, "ready": 1}}, Phase.RUNNING, id="all ready"
        ),
        pytest.param({"control": {"active": 1, "ready": 1}, "worker": {"active": 1}}, Phase.STARTING, id="some ready"),
        pytest.param(ZERO, Phase.PENDING, id="nothing means nothing"),
    ],
)
def test_counters_tell_only_where_pods_cannot_be_seen(key: str, counters: dict[str, dict[str, int]], phase: Phase) -> None:
    jobset = make_jobset(counters=counters, counters_key=key)
    assert jobset_status(observe(jobset)).phase is phase
    assert jobset_status(observe(jobset, make_gang_pods("Pending"))).phase is Phase.STARTING


@pytest.mark.parametrize("phase", [Phase.PENDING, Phase.QUEUED, Phase.STARTING, Phase.RUNNING])
@pytest.mark.parametrize(
    "jobset",
    [
        pytest.param(make_jobset(status={}), id="empty status"),
        pytest.param({**make_jobset(), "status": None}, id="no status"),
        pytest.param(make_jobset(status=[condition("Failed")]), id="a list for a status"),
        pytest.param(make_jobset(status="Failed"), id="a string for a status"),
        pytest.param({"metadata": {}, "spec": "?"}, id="nothing readable"),
        pytest.param({}, id="an empty object"),
    ],
)
def test_what_cannot_be_read_keeps_the_phase(phase: Phase, jobset: dict[str, Any]) -> None:
    assert jobset_status(observe(jobset), before(phase)).phase is phase


def test_zero_counters_after_running_change_nothing() -> None:
    """They are seen in every run: before the start, between success and Complete, in restarts."""
    assert jobset_status(observe(make_jobset(counters=ZERO)), before(Phase.RUNNING)).phase is Phase.RUNNING


def test_after_the_queue_comes_starting() -> None:
    assert jobset_status(observe(make_jobset(suspend=False, counters=ZERO)), before(Phase.QUEUED)).phase is Phase.STARTING


def test_a_restart_begins_with_starting() -> None:
    pods = make_gang_pods("Failed", exit_code=143, attempt=0)
    status = jobset_status(observe(make_jobset(restarts=1), pods), before(Phase.RUNNING))
    assert (status.phase, status.restarts, [rank.pod for rank in status.ranks]) == (Phase.STARTING, 1, [""] * 4)


def test_peers_that_are_taken_away_from_a_failing_gang_do_not_make_it_start_again() -> None:
    """The Job controller deletes them before it says that the Job has failed, and pods and Jobs come by different watches."""
    killed = [record(make_pod("worker", index, deleting_at=11), deleted=True) for index in (0, 1)]
    pods = [make_pod("control"), *killed, make_pod("worker", 2, "Failed", exit_code=3, reason="Error")]
    assert jobset_status(observe(make_jobset(), pods), before(Phase.RUNNING)).phase is Phase.RUNNING
    assert jobset_status(observe(make_jobset(), pods), before(Phase.STARTING)).phase is Phase.STARTING


def test_pods_from_before_a_resume_do_not_count() -> None:
    """Kueue preempts and starts again without any trace in restarts or labels."""
    killed = [record(pod, deleted=True) for pod in make_gang_pods("Failed", exit_code=143, deleting_at=10)]
    jobset = make_jobset(condition("Suspended", "False", at=15), suspend=False)
    status = jobset_status(observe(jobset, killed), before(Phase.QUEUED))
    assert (status.phase, [rank.pod for rank in status.ranks]) == (Phase.STARTING, [""] * 4)


@pytest.mark.parametrize("phase", [Phase.SUCCEEDED, Phase.FAILED, Phase.GONE])
@pytest.mark.parametrize(
    "observation",
    [
        pytest.param(observe(make_jobset(), make_gang_pods()), id="seems to run"),
        pytest.param(observe(make_jobset(condition("Completed"))), id="seems complete"),
        pytest.param(observe(make_jobset(FAILED)), id="seems failed"),
        pytest.param(observe(None), id="is gone"),
    ],
)
def test_a_verdict_is_final(phase: Phase, observation: Observation) -> None:
    assert jobset_status(observation, before(phase)).phase is phase


def test_later_evidence_makes_a_failure_more_precise() -> None:
    first = jobset_status(observe(make_jobset(), jobs=[make_job(TARGET)]))
    assert first.failure is not None
    assert (first.failure.category.value, first.failure.rank) == ("unknown", None)
    later = jobset_status(
        observe(make_jobset(), [make_pod("worker", 1, "Failed", exit_code=3)], jobs=[make_job(TARGET)]), first
    )
    assert later.failure is not None
    assert (later.failure.category.value, later.failure.rank) == ("user_error", 2)
    assert jobset_status(observe(None), later).failure == later.failure


def test_what_disrupted_it_may_come_later() -> None:
    message = "Pod default/js-1-worker-0-1-abcde has condition DisruptionTarget matching FailJob rule at index 0"
    job = make_job(condition("FailureTarget", reason="PodFailurePolicy", message=message))
    first = jobset_status(observe(make_jobset(), make_gang_pods(), jobs=[job]))
    assert first.failure is not None
    assert first.failure.is_vague
    preempted = condition("DisruptionTarget", reason="PreemptionByScheduler", at=9)
    pod = make_pod("worker", 1, "Failed", exit_code=143, conditions=[preempted], deleting_at=9)
    later = jobset_status(observe(make_jobset(), [pod], jobs=[job]), first)
    assert later.failure is not None
    assert (later.failure.category.value, later.failure.is_vague) == ("preempted", False)


class TestLostNode:
    """Neither JobSet nor Job ever says so: the pod alone tells."""

    pod = make_pod("worker", 1, conditions=[DISRUPTED], deleting_at=12, grace=30)

    def status(self, at: float, **fields: Any) -> WorkloadStatus:
        pods = [self.pod, *(pod for pod in make_gang_pods() if pod["metadata"]["name"] != self.pod["metadata"]["name"])]
        return jobset_status(observe(make_jobset(**fields), pods, at=at), before(Phase.RUNNING))

    def test_within_the_grace_period_it_may_still_end(self) -> None:
        assert self.status(41).phase is Phase.RUNNING

    def test_a_little_late_is_no_proof(self) -> None:
        assert self.status(50).phase is Phase.RUNNING

    def test_long_after_the_grace_period_it_is_lost(self) -> None:
        status = self.status(60)
        assert status.failure is not None
        assert (status.phase, status.failure.category.value, status.failure.rank) == (Phase.FAILED, "node_lost", 2)
        assert "node-1" in status.failure.summary

    def test_with_our_pod_failure_policy(self) -> None:
        assert self.status(60, job_spec={"backoffLimit": 6, **FAIL_ON_DISRUPTION}).phase is Phase.FAILED

    @pytest.mark.parametrize(
        "fields",
        [
            pytest.param({"failure_policy": {"maxRestarts": 2}}, id="the JobSet may restart"),
            pytest.param({"job_spec": {"backoffLimit": 2}}, id="the Job may start another pod"),
            pytest.param({"job_spec": {"backoffLimit": None}}, id="six more, which is the default"),
            pytest.param({"deleting_at": 12}, id="the JobSet is being deleted"),
        ],
    )
    def test_not_where_the_gang_may_heal_or_is_ended(self, fields: dict[str, Any]) -> None:
        assert self.status(600, **fields).phase is Phase.RUNNING

    def test_not_without_a_disruption(self) -> None:
        pod = make_pod("worker", 1, deleting_at=12)
        assert jobset_status(observe(make_jobset(), [pod], at=600)).phase is Phase.STARTING


class TestGone:
    def test_is_not_success(self) -> None:
        status = jobset_status(observe(None, make_gang_pods()), before(Phase.RUNNING))
        assert status.failure is not None
        assert (status.phase, status.size, status.failure.category.value) == (Phase.GONE, 4, "gone")
        assert status.failure.summary == "The JobSet was deleted by someone else, with all 4 ranks."

    def test_tells_what_had_failed_before(self) -> None:
        failed = record(make_pod("worker", 1), make_pod("worker", 1, "Failed", exit_code=137, reason="OOMKilled"))
        status = jobset_status(observe(None, [failed, make_pod("control")]), before(Phase.RUNNING))
        assert status.failure is not None
        assert (status.phase, status.failure.category.value, status.failure.rank) == (Phase.GONE, "out_of_memory", 2)
        assert status.failure.summary.endswith("The JobSet was deleted afterwards.")

    def test_success_that_was_seen_is_not_lost_with_the_object(self) -> None:
        pods = [record(pod, deleted=True) for pod in make_gang_pods("Succeeded", exit_code=0)]
        assert jobset_status(observe(None, pods), before(Phase.RUNNING)).phase is Phase.SUCCEEDED
        assert jobset_status(observe(None, pods[:3]), before(Phase.RUNNING)).phase is Phase.GONE
        assert jobset_status(observe(None, pods)).phase is Phase.GONE  # nobody knows how many they were

    def test_while_it_is_being_deleted_the_phase_stays(self) -> None:
        pods = make_gang_pods("Failed", exit_code=143, deleting_at=12)
        status = jobset_status(observe(make_jobset(deleting_at=11), pods), before(Phase.RUNNING))
        assert status.waiting is not None
        assert (status.phase, status.waiting.category.value) == (Phase.RUNNING, "gone")


def test_two_pods_of_one_rank() -> None:
    old = make_pod("worker", 0, suffix="older", created_at=0, deleting_at=9)
    new = make_pod("worker", 0, "Pending", suffix="newer", created_at=10)
    for pods in ([old, new], [new, old]):
        ranks = {rank.rank: rank for rank in jobset_status(observe(make_jobset(), pods)).ranks}
        assert (ranks[1].pod, ranks[1].phase) == ("js-1-worker-0-0-newer", "Pending")


def test_a_refused_job_is_told_while_control_runs() -> None:
    jobset = make_jobset(status={})
    event = make_event(
        "JobCreationFailed", 'job "js-1-worker-0" creation failed with error: Job.batch "x" is invalid: nope', count=9
    )
    status = jobset_status(observe(jobset, [make_pod("control")], jobs=[make_job(role="control")], events=[event]))
    assert status.waiting is not None
    assert (status.phase, status.waiting.category.value, status.waiting.is_hopeless) == (Phase.STARTING, "rejected", True)


def test_a_queued_gang_says_what_kueue_says() -> None:
    queued = make_queued(condition("QuotaReserved", "False", "Pending", "insufficient unused quota for cpu, 1 more needed"))
    status = jobset_status(observe(make_jobset(suspend=True), admission=queued))
    assert status.waiting is not None
    assert status.waiting.summary == "Waits in queue lq: insufficient unused quota for cpu, 1 more needed."


def test_counts_are_of_pods_by_phase() -> None:
    status = jobset_status(observe(make_jobset(), [make_pod("control"), make_pod("worker", 0, "Pending")]))
    assert dict(status.counts) == {"Running": 1, "Pending": 1}


def test_ranks_that_a_suspension_told_to_end_are_no_success() -> None:
    """They end with 0, since they take the signal for a reason to save and go."""
    running, stopping = make_gang_pods(), make_gang_pods(deleting_at=5)
    ended = make_gang_pods("Succeeded", exit_code=0, deleting_at=5, finished_at=6)
    watched = [record(*states) for states in zip(running, stopping, ended, strict=True)]
    for is_suspended in (True, False):
        status = jobset_status(observe(make_jobset(suspend=is_suspended), watched), before(Phase.RUNNING))
        assert status.phase is not Phase.SUCCEEDED
