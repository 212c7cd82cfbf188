"""Why it does not run (yet), in words, and whether waiting can help."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Category, Waiting
from tests.builders_objects import (
    Object,
    condition,
    make_event,
    make_gang_pods,
    make_job,
    make_jobset,
    make_pod,
    make_queued,
    moment,
    observe,
)


def waiting(*args: Any, **fields: Any) -> Waiting:
    found = jobset_status(observe(*args, **fields)).waiting
    assert found is not None
    return found


def summary_of(found: Waiting) -> tuple[str, str, bool]:
    return found.category.value, found.summary, found.is_hopeless


NO_QUOTA = "insufficient unused quota for cpu in flavor default, 1 more needed"
WAITING = "waiting for all admitted workloads to be in PodsReady condition"
TOO_LARGE = "insufficient quota for cpu, current podset request (100) > maximum capacity (4)"


@pytest.mark.parametrize(
    ("admission", "expected"),
    [
        pytest.param(make_queued(), ("quota", "Waits in queue lq.", False), id="Kueue has not looked yet"),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Pending", NO_QUOTA)),
            ("quota", f"Waits in queue lq: {NO_QUOTA}.", False),
            id="no quota now",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Pending", TOO_LARGE)),
            ("quota", f"Can never start in queue lq: {TOO_LARGE}.", True),
            id="larger than the queue",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Inadmissible", "LocalQueue lq doesn't exist")),
            ("quota", "Can never start in queue lq: LocalQueue lq doesn't exist.", True),
            id="no such queue",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Inadmissible", "ClusterQueue cq is inactive")),
            ("quota", "Waits in queue lq: ClusterQueue cq is inactive.", False),
            id="the queue is stopped, and may be started again",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Pending", NO_QUOTA), condition("Evicted", reason="Preempted")),
            ("preempted", f"Was preempted, and waits in queue lq: {NO_QUOTA}.", False),
            id="preempted",
        ),
        pytest.param(
            make_queued(condition("Evicted", reason="Deactivated"), active=False),
            ("quota", "Was deactivated in queue lq, and stays so until it is activated again.", False),
            id="deactivated",
        ),
        pytest.param(
            make_queued(
                condition("QuotaReserved"), checks=[{"name": "prov", "state": "Pending"}, {"name": "ok", "state": "Ready"}]
            ),
            ("quota", "Has its quota in queue lq, and waits for admission check prov.", False),
            id="an admission check is open",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved"), checks=[{"name": "prov", "state": "Pending", "message": "3 of 8 nodes"}]),
            ("quota", "Has its quota in queue lq, and waits for admission check prov: 3 of 8 nodes.", False),
            id="an admission check is open, and says how far it is",
        ),
        pytest.param(
            make_queued(
                condition("QuotaReserved", "False", "Pending", "At least one admission check is false"),
                condition("Evicted", reason="AdmissionCheck", message="At least one admission check is false"),
                checks=[{"name": "prov", "state": "Retry", "message": "no capacity in this zone"}],
            ),
            (
                "quota",
                "Was taken back by an admission check, and waits in queue lq: "
                "admission check prov: no capacity in this zone is to be tried again.",
                False,
            ),
            id="an admission check wants another try",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved"), checks=[{"name": "prov", "state": "Rejected", "message": "too large"}]),
            ("quota", "Is rejected in queue lq by admission check prov: too large.", True),
            id="an admission check has rejected it",
        ),
        pytest.param(
            make_queued(
                condition("Evicted", reason="DeactivatedDueToAdmissionCheck"),
                active=False,
                checks=[{"name": "prov", "state": "Rejected", "message": "too large"}],
            ),
            ("quota", "Was given up by queue lq: an admission check has rejected it (prov: too large).", True),
            id="an admission check has rejected it, and Kueue has deactivated it",
        ),
        pytest.param(
            make_queued(
                condition("QuotaReserved", "False", "Pending", "Exceeded the PodsReady timeout ns/wl"),
                condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout ns/wl"),
                requeueState={"count": 2, "requeueAt": "2030-01-01T01:00:00Z"},
            ),
            (
                "quota",
                "Was taken back since not all its pods were ready in time, and waits in queue lq until 01:00:00 UTC (try 3).",
                False,
            ),
            id="its pods were not ready in time",
        ),
        pytest.param(
            make_queued(
                condition("QuotaReserved", "False", "Pending", NO_QUOTA),
                condition("Evicted", reason="PodsReadyTimeout", message="Exceeded the PodsReady timeout ns/wl"),
                requeueState={"count": 1, "requeueAt": "2020-01-01T01:00:00Z"},
            ),
            (
                "quota",
                f"Was taken back since not all its pods were ready in time, and waits in queue lq: {NO_QUOTA}.",
                False,
            ),
            id="its pods were not ready in time, and it is its turn again",
        ),
        pytest.param(
            make_queued(condition("Evicted", reason="DeactivatedDueToRequeuingLimitExceeded"), active=False),
            ("quota", "Was given up by queue lq: not all its pods were ready in time, too often.", True),
            id="its pods were not ready in time, too often",
        ),
        pytest.param(
            make_queued(condition("Evicted", reason="DeactivatedDueToMaximumExecutionTimeExceeded"), active=False),
            ("deadline", "Was given up by queue lq: it ran longer than its maximum execution time.", True),
            id="its maximum execution time",
        ),
        pytest.param(
            make_queued(condition("Evicted", reason="DeactivatedDueToSomethingNew"), active=False),
            ("quota", "Was given up by queue lq: SomethingNew.", True),
            id="a reason of later versions",
        ),
        pytest.param(
            make_queued(
                condition("QuotaReserved", "False", "Inadmissible", "ClusterQueue cq is stopped"),
                condition("Evicted", reason="ClusterQueueStopped", message="The ClusterQueue is stopped"),
            ),
            (
                "quota",
                "Was stopped together with its ClusterQueue, and waits in queue lq: ClusterQueue cq is stopped.",
                False,
            ),
            id="its ClusterQueue is stopped and drained",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Inadmissible", "LocalQueue lq is stopped")),
            ("quota", "Waits in queue lq: LocalQueue lq is stopped.", False),
            id="its LocalQueue is stopped",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved", "False", "Waiting", WAITING)),
            ("quota", f"Waits in queue lq: {WAITING}.", False),
            id="others are to be ready first",
        ),
        pytest.param(
            make_queued(condition("QuotaReserved"), condition("Admitted")),
            ("quota", "Admitted by queue lq, is being started.", False),
            id="admitted",
        ),
    ],
)
def test_in_a_queue(admission: Object, expected: tuple[str, str, bool]) -> None:
    assert summary_of(waiting(make_jobset(suspend=True), admission=admission)) == expected


def test_in_a_queue_that_kueue_does_not_tell_of() -> None:
    jobset = make_jobset(suspend=True, labels={"kueue.x-k8s.io/queue-name": "lq"})
    assert summary_of(waiting(jobset)) == ("quota", "Waits in queue lq.", False)


def test_suspended_without_a_queue() -> None:
    assert waiting(make_jobset(suspend=True)).summary.startswith("Is suspended (spec.suspend is true)")


INVALID = 'job "js-1-worker-0" creation failed with error: Job.batch "js-1-worker-0" is invalid: spec.x: Not found: "nov"'
SAID = 'Job js-1-worker-0 can\'t be created: Job.batch "js-1-worker-0" is invalid: spec.x: Not found: "nov".'


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(make_event("JobCreationFailed", INVALID, count=9), ("rejected", SAID, True), id="said often"),
        pytest.param(
            make_event("JobCreationFailed", INVALID, first_at=19, at=19), ("rejected", SAID, False), id="said once, just now"
        ),
        pytest.param(make_event("JobCreationFailed", INVALID, first_at=1), ("rejected", SAID, True), id="said once, long ago"),
        pytest.param(
            make_event("JobCreationFailed", 'job "js-1-worker-0" creation failed with error: exceeded quota: jobs', count=9),
            ("quota", "Job js-1-worker-0 can't be created: exceeded quota: jobs.", False),
            id="quota passes",
        ),
        pytest.param(
            make_event(
                "JobCreationFailed", 'job "js-1-worker-0" creation failed with error: failed calling webhook "m"', count=9
            ),
            ("rejected", 'Job js-1-worker-0 can\'t be created: failed calling webhook "m".', False),
            id="a webhook that is down passes",
        ),
        pytest.param(
            make_event("JobCreationFailed", "novel text", count=9),
            ("rejected", "A Job can't be created: novel text.", True),
            id="another text",
        ),
    ],
)
def test_a_job_is_refused(event: Object, expected: tuple[str, str, bool]) -> None:
    assert summary_of(waiting(make_jobset(status={}), events=[event])) == expected


@pytest.mark.parametrize(
    ("event", "jobs"),
    [
        pytest.param(
            make_event(
                "JobCreationFailed", 'job "js-1-worker-0" creation failed with error: jobs.batch "js-1-worker-0" already exists'
            ),
            [],
            id="a race, in healthy runs",
        ),
        pytest.param(make_event("JobCreationFailed", INVALID), [make_job()], id="it has been created since"),
        pytest.param(make_event("JobCreationFailed", INVALID, make_jobset(name="other")), [], id="of another JobSet"),
        pytest.param(make_event("Surprise", INVALID), [], id="another reason"),
    ],
)
def test_no_job_is_refused(event: Object, jobs: list[Object]) -> None:
    assert jobset_status(observe(make_jobset(), events=[event], jobs=jobs)).waiting is None


def test_pods_are_refused_by_a_quota() -> None:
    message = 'Error creating: pods "js-1-worker-0-1-x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2'
    event = make_event("FailedCreate", message, make_job(), count=50)
    found = waiting(make_jobset(), [make_pod("control")], jobs=[make_job()], events=[event])
    assert (found.category.value, found.is_hopeless) == ("quota", False)
    assert found.summary.startswith("A pod of Job js-1-worker-0 can't be created: exceeded quota: q, requested")
    assert jobset_status(observe(make_jobset(), make_gang_pods(), jobs=[make_job()], events=[event])).waiting is None


@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        pytest.param('violates PodSecurity "restricted:latest": runAsNonRoot != true', True, id="pod security"),
        pytest.param("failed quota: q: must specify limits.memory for: train", True, id="a quota that wants limits"),
        pytest.param("maximum memory usage per Container is 1Gi, but limit is 4Gi", True, id="a limit range"),
        pytest.param('error looking up service account ns/sa: serviceaccount "sa" not found', False, id="no account yet"),
        pytest.param("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2", False, id="a full quota"),
    ],
)
def test_pods_that_will_never_be_created_are_given_up(error: str, is_final: bool) -> None:
    message = f'Error creating: pods "js-1-worker-0-1-x" is forbidden: {error}'
    event = make_event("FailedCreate", message, make_job(), count=3)
    found = waiting(make_jobset(), [make_pod("control")], jobs=[make_job()], events=[event])
    assert found.is_hopeless == is_final
    assert found.summary.startswith(f"A pod of Job js-1-worker-0 can't be created: {error[:20]}")


def others(*pods: Object) -> list[Object]:
    names = {pod["metadata"]["name"] for pod in pods}
    return [*pods, *(pod for pod in make_gang_pods() if pod["metadata"]["name"] not in names)]


WHO = "Worker 1 (rank 2, pod js-1-worker-0-1-abcde on node-1)"
NO_NODE = "0/2 nodes are available: 2 Insufficient memory. preemption: 0/2 nodes are available: 2 Preemption is not helpful."


@pytest.mark.parametrize(
    ("pod", "at", "expected"),
    [
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="ErrImagePull", message="not found"),
            20,
            ("image_pull", f"{WHO} can't get its image app:1.", False),
            id="ErrImagePull",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="ImagePullBackOff", message="Back-off pulling"),
            20,
            ("image_pull", f"{WHO} can't get its image app:1.", False),
            id="ImagePullBackOff, in the same words",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="InvalidImageName"),
            1,
            ("image_pull", f"{WHO} can't get its image app:1: it is not a valid image name.", True),
            id="InvalidImageName can't heal",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="ErrImageNeverPull"),
            1,
            ("image_pull", f"{WHO} can't get its image app:1: it is not on its node, and may not be pulled.", True),
            id="ErrImageNeverPull can't heal",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="CreateContainerConfigError", message='secret "s" not found'),
            20,
            (
                "rejected",
                f'{WHO} can\'t create its container (CreateContainerConfigError): secret "s" not found.',
                False,
            ),
            id="a secret that may still come",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="CreateContainerConfigError", message='secret "s" not found'),
            100,
            ("rejected", f'{WHO} can\'t create its container (CreateContainerConfigError): secret "s" not found.', True),
            id="a secret that has not come",
        ),
        pytest.param(
            make_pod(
                "worker", 1, "Pending", conditions=[condition("PodScheduled", "False", "Unschedulable", NO_NODE)], node=""
            ),
            20,
            ("unschedulable", "1 of 4 ranks have no node: 0/2 nodes are available: 2 Insufficient memory.", False),
            id="unschedulable",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", conditions=[condition("PodScheduled", "False", "SchedulingGated")], node=""),
            20,
            ("quota", "1 of 4 ranks have to wait behind a scheduling gate.", False),
            id="gated",
        ),
        pytest.param(
            make_pod("worker", 1, "Running", waiting="CrashLoopBackOff"), 20, None, id="its own container restarts: it runs"
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="ContainerCreating"),
            20,
            ("unknown", "3 of 4 ranks run; waits for worker 1.", False),
            id="just slow",
        ),
        pytest.param(
            make_pod("worker", 1, "Pending", waiting="NovelReason"),
            20,
            ("unknown", "3 of 4 ranks run; waits for worker 1.", False),
            id="an unknown reason",
        ),
    ],
)
def test_one_pod_holds_up_the_gang(pod: Object, at: float, expected: tuple[str, str, bool] | None) -> None:
    found = jobset_status(observe(make_jobset(), others(pod), at=at)).waiting
    assert (summary_of(found) if found else None) == expected


def test_unschedulable_says_what_to_do() -> None:
    pod = make_pod("worker", 1, "Pending", conditions=[condition("PodScheduled", "False", "Unschedulable", NO_NODE)])
    assert "@resources(memory=...)" in waiting(make_jobset(), others(pod)).detail


def test_the_cause_of_an_image_error_is_in_its_event() -> None:
    pod = make_pod("worker", 1, "Pending", waiting="ImagePullBackOff", message="Back-off pulling image")
    events = [
        make_event("Failed", 'Failed to pull image "app:1": not found', pod),
        make_event("Failed", "Error: ErrImagePull", pod, at=9),
    ]
    assert waiting(make_jobset(), others(pod), events=events).detail == 'Failed to pull image "app:1": not found'


def test_a_long_pull_says_of_what_and_for_how_long() -> None:
    pod = make_pod("worker", 1, "Pending", waiting="ContainerCreating")
    pulling = make_event("Pulling", 'Pulling image "big/app:1"', pod, at=10)
    found = waiting(make_jobset(), others(pod), events=[pulling], at=250)
    assert found.summary == f"{WHO} has been pulling its image big/app:1 for 4 min."
    assert (found.category, found.is_hopeless, found.is_ordinary) == (Category.UNKNOWN, False, False)
    pulled = make_event("Pulled", 'Successfully pulled image "big/app:1" in 3m', pod, at=240)
    assert waiting(make_jobset(), others(pod), events=[pulling, pulled], at=250).is_ordinary


def test_volumes() -> None:
    pod = make_pod("worker", 1, "Pending", waiting="ContainerCreating")
    event = make_event("FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "s" not found', pod)
    found = waiting(make_jobset(), others(pod), events=[event])
    assert found.summary == f'{WHO} waits for its volumes: MountVolume.SetUp failed for volume "v" : secret "s" not found.'


def test_what_cannot_heal_is_told_first() -> None:
    pods = [
        make_pod("worker", 0, "Pending", waiting="ErrImagePull"),
        make_pod("worker", 1, "Pending", waiting="InvalidImageName"),
    ]
    assert waiting(make_jobset(), others(*pods)).is_hopeless


def test_nobody_looks_at_it() -> None:
    jobset = make_jobset(status={})
    assert jobset_status(observe(jobset, at=20)).waiting is None
    assert waiting(jobset, at=40).summary == "JobSet has no status yet: no controller seems to look at it."


def test_since_when() -> None:
    pod = make_pod("worker", 1, "Pending", waiting="ErrImagePull", created_at=7)
    assert waiting(make_jobset(), others(pod)).since == moment(7)


@pytest.mark.parametrize(
    "jobset",
    [pytest.param(make_jobset(condition("Completed")), id="done"), pytest.param(make_jobset(condition("Failed")), id="failed")],
)
def test_nothing_is_waited_for_at_the_end(jobset: Object) -> None:
    assert jobset_status(observe(jobset, others(make_pod("worker", 1, "Pending", waiting="ErrImagePull")))).waiting is None


def test_the_words_of_a_check_outlive_what_kueue_takes_back_when_it_gives_up() -> None:
    message = "Reset to Pending after eviction. Previously: Rejected"
    admission = make_queued(
        condition("DeactivationTarget", reason="AdmissionCheck", message="Admission check(s): prov, were rejected"),
        condition("Evicted", reason="DeactivatedDueToAdmissionCheck"),
        active=False,
        checks=[{"name": "prov", "state": "Pending", "message": message}],
    )
    said = "Deactivating workload because AdmissionCheck for prov was Rejected: too large"
    events = [make_event("AdmissionCheckRejected", said, admission), make_event("Pending", "no quota", admission)]
    found = waiting(make_jobset(suspend=True), admission=admission, events=events)
    assert found.summary == "Was given up by queue lq: an admission check has rejected it (prov: too large)."
    assert found.is_hopeless
