"""A plain batch/v1 Job as a workload: the same verdicts, without restarts."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.job import job_status
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase, WorkloadStatus
from tests.builders_objects import condition, make_event, make_plain_job, make_pod, observe, record

LOST = condition("DisruptionTarget", reason="DeletionByTaintManager", at=12)


def pod(phase: str = "Running", index: int = 0, **fields: Any) -> Any:
    return make_pod(index=index, phase=phase, plain=True, **fields)


@pytest.mark.parametrize(
    ("observation", "phase"),
    [
        pytest.param(observe(None, was_seen=False), Phase.PENDING, id="not seen yet"),
        pytest.param(observe(make_plain_job(status={})), Phase.PENDING, id="no status yet"),
        pytest.param(observe(make_plain_job(suspend=True)), Phase.QUEUED, id="suspended"),
        pytest.param(observe(make_plain_job(condition("Suspended"), suspend=False)), Phase.QUEUED, id="resumed a moment ago"),
        pytest.param(observe(make_plain_job(), [pod("Pending")]), Phase.STARTING, id="pending"),
        pytest.param(observe(make_plain_job(), [pod()]), Phase.RUNNING, id="running"),
        pytest.param(observe(make_plain_job(status={"active": 1})), Phase.STARTING, id="pods can't be seen"),
        pytest.param(
            observe(make_plain_job(status={"active": 1, "ready": 1})), Phase.RUNNING, id="pods can't be seen, one is ready"
        ),
        pytest.param(observe(make_plain_job(), [pod("Succeeded", exit_code=0)]), Phase.SUCCEEDED, id="its pod has succeeded"),
        pytest.param(observe(make_plain_job(condition("Complete"))), Phase.SUCCEEDED, id="Complete"),
        pytest.param(observe(make_plain_job(condition("Complete", "False")), [pod()]), Phase.RUNNING, id="Complete False"),
        pytest.param(observe(make_plain_job(condition("SuccessCriteriaMet")), [pod()]), Phase.RUNNING, id="not Complete yet"),
        pytest.param(observe(make_plain_job(condition("FailureTarget")), [pod()]), Phase.FAILED, id="FailureTarget"),
        pytest.param(observe(make_plain_job(condition("Failed"))), Phase.FAILED, id="Failed"),
        pytest.param(
            observe(make_plain_job(), [pod("Failed", exit_code=1)]), Phase.RUNNING, id="a pod failed: the Job decides"
        ),
        pytest.param(
            observe(make_plain_job(backoffLimit=2), [pod("Failed", exit_code=1), pod("Pending", suffix="again", created_at=5)]),
            Phase.STARTING,
            id="replaced",
        ),
        pytest.param(
            observe(make_plain_job(condition("FailureTarget"), deleting_at=9), [pod(deleting_at=9)]),
            Phase.RUNNING,
            id="FailureTarget while it is being deleted",
        ),
        pytest.param(observe(None), Phase.GONE, id="404 after it was seen"),
        pytest.param(
            observe(make_plain_job(), [pod(conditions=[LOST], deleting_at=12)], at=99), Phase.FAILED, id="its node is lost"
        ),
        pytest.param(
            observe(make_plain_job(backoffLimit=1), [pod(conditions=[LOST], deleting_at=12)], at=99),
            Phase.RUNNING,
            id="its node is lost, but the Job starts another pod",
        ),
        pytest.param(
            observe(make_plain_job(completions=3), [pod(index=0), pod(index=1)]), Phase.STARTING, id="two of three indexes"
        ),
        pytest.param(
            observe(make_plain_job(completions=3), [pod(index=index) for index in range(3)]),
            Phase.RUNNING,
            id="all three indexes",
        ),
        pytest.param(
            observe(make_plain_job(completions=2), [pod("Succeeded", index, exit_code=0) for index in range(2)]),
            Phase.SUCCEEDED,
            id="all indexes have succeeded",
        ),
        pytest.param(
            observe(make_plain_job(completions=2), [pod("Succeeded", 0, exit_code=0), pod("Failed", 1, exit_code=1)]),
            Phase.RUNNING,
            id="one index has failed: never succeeded",
        ),
    ],
)
def test_phase(observation: Observation, phase: Phase) -> None:
    assert job_status(observation).phase is phase


@pytest.mark.parametrize(
    "job", [{}, {"spec": 3}, {"status": []}, make_plain_job(status="Complete"), make_plain_job(status=[1])]
)
def test_what_cannot_be_read_keeps_the_phase(job: Any) -> None:
    assert job_status(observe(job), WorkloadStatus(phase=Phase.RUNNING, size=1)).phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("found", "summary"),
    [
        pytest.param(
            pod("Failed", exit_code=137, reason="OOMKilled"),
            "The task (pod js-1-0-abcde on node-1) ran out of memory (OOMKilled, exit code 137).",
            id="out of memory",
        ),
        pytest.param(
            pod("Failed", exit_code=3), "The task (pod js-1-0-abcde on node-1) failed with exit code 3.", id="user error"
        ),
        pytest.param(
            record(pod(), pod(deleting_at=5), deleted=True),
            "The task (pod js-1-0-abcde on node-1) was deleted from outside, while it ran.",
            id="deleted by hand",
        ),
    ],
)
def test_why_it_failed(found: Any, summary: str) -> None:
    failure = job_status(observe(make_plain_job(condition("Failed")), [found])).failure
    assert failure is not None
    assert (failure.summary, failure.role, failure.rank) == (summary, "task", 0)


def test_an_index_is_named() -> None:
    pods = [pod(index=0), pod("Failed", 1, exit_code=3)]
    failure = job_status(observe(make_plain_job(condition("Failed"), completions=2), pods)).failure
    assert failure is not None
    assert failure.summary == "Task 1 (rank 1, pod js-1-1-abcde on node-1) failed with exit code 3."


def test_its_policy_names_a_pod_that_is_gone() -> None:
    message = "Container main for pod default/js-1-xyz12 failed with exit code 3 matching FailJob rule at index 1"
    failure = job_status(
        observe(make_plain_job(condition("FailureTarget", reason="PodFailurePolicy", message=message)))
    ).failure
    assert failure is not None
    assert failure.summary == "The task (pod js-1-xyz12) failed with exit code 3."


@pytest.mark.parametrize("owners", [[], [{"kind": "AppWrapper", "uid": "uid-of-its-owner"}]])
def test_its_own_deadline(owners: list[Any]) -> None:
    job = make_plain_job(condition("FailureTarget", reason="DeadlineExceeded"), activeDeadlineSeconds=60)
    job["metadata"]["ownerReferences"] = owners
    failure = job_status(observe(job, [pod(deleting_at=9)])).failure
    assert failure is not None
    assert failure.summary == "The task timed out after 60 s (DeadlineExceeded, Job js-1)."


def test_its_refused_pods_are_told() -> None:
    job = make_plain_job()
    event = make_event(
        "FailedCreate", 'Error creating: pods "x" is forbidden: error looking up service account ns/sa: not found', job
    )
    waiting = job_status(observe(job, events=[event])).waiting
    assert waiting is not None
    assert waiting.summary.startswith("A pod of Job js-1 can't be created: error looking up service account")


def test_pods_of_an_earlier_job_of_the_same_name_are_not_its_own() -> None:
    old = pod("Failed", exit_code=3)
    old["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = "another"
    assert job_status(observe(make_plain_job(), [old])).phase is Phase.PENDING


def alike(suffix: str, phase: str = "Running", **fields: Any) -> Any:
    """A pod of a NonIndexed Job, which has no index."""
    made = pod(phase, suffix=suffix, uid=f"uid-{suffix}", **fields)
    made["metadata"]["labels"] = {}
    return made


def test_pods_without_an_index_are_ranks_all_the_same() -> None:
    status = job_status(observe(make_plain_job(completions=3), [alike("aaaaa"), alike("bbbbb"), alike("ccccc")]))
    assert (status.phase, [rank.pod for rank in status.ranks]) == (
        Phase.RUNNING,
        [f"js-1-0-{3 * one}{2 * one}" for one in "abc"],
    )


def test_one_of_them_is_the_culprit_though_others_run() -> None:
    pods = [alike("aaaaa"), alike("bbbbb", "Failed", exit_code=6), alike("ccccc", created_at=1)]
    failure = job_status(observe(make_plain_job(condition("FailureTarget"), completions=3), pods)).failure
    assert failure is not None
    assert (failure.pod, failure.rank, failure.exit_code) == ("js-1-0-bbbbb", 1, 6)


def test_a_replacement_has_the_rank_of_the_one_that_failed() -> None:
    pods = [alike("aaaaa"), alike("bbbbb", "Failed", exit_code=6), alike("ccccc", created_at=20)]
    status = job_status(observe(make_plain_job(completions=2, backoffLimit=3), pods))
    assert (status.phase, [rank.pod for rank in status.ranks]) == (Phase.RUNNING, ["js-1-0-aaaaa", "js-1-0-ccccc"])


@pytest.mark.parametrize(
    ("pods", "phase"),
    [
        pytest.param([pod(), pod(index=1)], Phase.RUNNING, id="two of four at once"),
        pytest.param([pod("Succeeded", exit_code=0), pod(index=1)], Phase.STARTING, id="the third is late"),
        pytest.param(
            [*(pod("Succeeded", index=i, exit_code=0) for i in range(3)), pod(index=3)], Phase.RUNNING, id="the last one"
        ),
    ],
)
def test_a_job_may_run_fewer_at_once_than_it_has(pods: list[Any], phase: Phase) -> None:
    assert job_status(observe(make_plain_job(completions=4, parallelism=2), pods)).phase is phase


def test_a_container_that_failed_too_often_was_not_deleted_by_hand() -> None:
    """restartPolicy OnFailure: the Job deletes the pod at its backoffLimit, while the container runs again."""
    running = pod(restartPolicy="OnFailure")
    again = pod(restartPolicy="OnFailure", deleting_at=9)
    for one in (running, again):
        one["status"]["containerStatuses"][0] |= {
            "restartCount": 1,
            "lastState": {"terminated": {"exitCode": 3, "reason": "Error"}},
        }
    job = make_plain_job(condition("FailureTarget", reason="BackoffLimitExceeded"), backoffLimit=1)
    failure = job_status(observe(job, [record(running, again)])).failure
    assert failure is not None
    assert (failure.category.value, failure.exit_code, failure.rank) == ("user_error", 3, 0)
