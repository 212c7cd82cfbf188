"""What a JobSet goes through, told as the recordings of a real control plane tell it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.devcluster.world import FAIL_JOB_RULES, JOBS, JOBSETS, World, gang

Object = dict[str, Any]
ZERO = "a0 r0 s0 f0"
FIRST = "(first failed job: g-worker-0)"


def succeed(world: World, *hosts: str) -> None:
    for host in hosts or ("g-worker-0-0", "g-worker-0-1", "g-worker-0-2", "g-control-0-0"):
        world.end(world.pod(host))


def test_a_gang_that_succeeds_completes_and_keeps_its_pods() -> None:
    world = World()
    world.start(gang())
    succeed(world)
    assert world.conditions(world.jobset()) == [("Completed", "True", "AllJobsCompleted")]
    assert world.jobset()["status"]["terminalState"] == "Completed"
    assert world.conditions(world.job("g-worker-0")) == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert len(world.pods()) == 4
    assert not any(pod["metadata"].get("finalizers") for pod in world.pods())


def test_the_first_status_is_all_zero_and_then_jobs_are_counted() -> None:
    world = World()
    world.start(gang(), running=False)
    statuses = [obj.get("status") for obj in world.written(JOBSETS)]
    assert statuses[0] is None
    assert [part["active"] for part in statuses[1]["replicatedJobsStatus"]] == [0, 0]
    assert [part["name"] for part in statuses[1]["replicatedJobsStatus"]] == ["worker", "control"]
    assert "conditions" not in statuses[-1]
    assert (world.counts("g", "worker"), world.counts("g", "control")) == ("a1 r0 s0 f0", "a1 r0 s0 f0")


def test_between_the_last_success_and_complete_a_job_reads_inactive_and_ready() -> None:
    world = World()
    world.start(gang())
    world.written(JOBSETS)
    succeed(world, "g-control-0-0")
    seen = [
        {key: part[key] for key in ("active", "ready", "succeeded")}
        for obj in world.written(JOBSETS)
        for part in obj["status"]["replicatedJobsStatus"]
        if part["name"] == "control"
    ]
    assert {"active": 0, "ready": 1, "succeeded": 0} in seen
    assert seen[-1] == {"active": 0, "ready": 0, "succeeded": 1}


def test_a_worker_that_fails_ends_its_peers_then_the_job_then_the_jobset() -> None:
    world = World()
    world.start(gang())
    world.end(world.pod("g-worker-0-2"), 3)
    assert world.conditions(world.job("g-worker-0")) == [("FailureTarget", "True", "BackoffLimitExceeded")]
    assert world.job("g-worker-0")["status"]["terminating"] == 2
    assert "conditions" not in world.jobset()["status"]
    assert (world.counts("g", "worker"), world.counts("g", "control")) == (ZERO, "a1 r1 s0 f0")
    world.finish_deletions()
    assert world.conditions(world.jobset()) == [("Failed", "True", "FailedJobs")]
    assert world.message(world.jobset(), "Failed") == f"jobset failed due to one or more job failures {FIRST}"
    world.finish_deletions()
    assert world.jobs() == ["g-worker-0"]
    assert [pod["spec"]["hostname"] for pod in world.pods()] == ["g-worker-0-2"]
    assert world.job("g-worker-0")["status"]["failed"] == 3
    assert world.counts("g", "control") == ZERO


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        pytest.param("exit", "Container main for pod default/{pod} failed with exit code 42", id="exit code"),
        pytest.param("evict", "Pod default/{pod} has condition DisruptionTarget", id="disruption"),
    ],
)
def test_a_pod_failure_policy_names_the_pod_in_condition_and_event(harm: str, message: str) -> None:
    world = World()
    world.start(gang(job={"podFailurePolicy": {"rules": FAIL_JOB_RULES}}))
    pod = world.pod("g-worker-0-1")
    rule = 1
    if harm == "exit":
        world.end(pod, 42)
    else:
        world.disrupt(pod)
        rule = 0
    world.finish_deletions()
    text = f"{message.format(pod=pod['metadata']['name'])} matching FailJob rule at index {rule}"
    assert world.message(world.job("g-worker-0"), "Failed") == text
    assert world.events("g-worker-0", "PodFailurePolicy") == [("PodFailurePolicy", text)]


def test_a_pod_deleted_by_hand_is_a_failure() -> None:
    world = World()
    world.start(gang())
    world.store.delete("pods", "default", world.pod("g-worker-0-1")["metadata"]["name"])
    world.settle()
    assert world.conditions(world.job("g-worker-0")) == [("FailureTarget", "True", "BackoffLimitExceeded")]


def test_with_a_pod_failure_policy_a_lost_pod_shows_nothing_until_it_is_gone() -> None:
    world = World()
    world.start(gang(job={"podFailurePolicy": {"rules": FAIL_JOB_RULES}}))
    world.store.delete("pods", "default", world.pod("g-worker-0-1")["metadata"]["name"])
    world.advance(30)
    status = world.job("g-worker-0")["status"]
    assert (status["active"], status["terminating"], status.get("conditions")) == (2, 1, None)


def test_a_failed_pod_is_replaced_after_the_back_off() -> None:
    world = World()
    world.start(gang(job={"backoffLimit": 2}))
    world.end(world.pod("g-worker-0-2"), 3)
    world.advance(9)
    assert len(world.pods()) == 4
    world.advance(2)
    assert len(world.pods()) == 5
    assert world.job("g-worker-0")["status"]["failed"] == 1


def test_the_success_of_a_peer_ends_the_back_off() -> None:
    world = World()
    world.start(gang(job={"backoffLimit": 2}))
    world.end(world.pod("g-worker-0-2"), 3)
    world.end(world.pod("g-worker-0-0"))
    assert len(world.pods()) == 5


def test_a_failed_index_is_named() -> None:
    world = World()
    worker = gang(job={"backoffLimit": None, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0})
    world.start(worker)
    world.end(world.pod("g-worker-0-2"), 3)
    world.finish_deletions()
    job = world.job("g-worker-0")
    assert job["status"]["failedIndexes"] == "2"
    assert world.conditions(job)[-1] == ("Failed", "True", "MaxFailedIndexesExceeded")


def test_a_job_past_its_deadline_deletes_its_pods() -> None:
    world = World()
    limited = gang()
    limited["spec"]["replicatedJobs"][1]["template"]["spec"]["activeDeadlineSeconds"] = 3
    world.start(limited)
    world.advance(3.5)
    world.finish_deletions()
    job = world.job("g-worker-0")
    assert world.conditions(job)[-1] == ("Failed", "True", "DeadlineExceeded")
    assert not [pod for pod in world.pods() if pod["spec"]["hostname"].startswith("g-worker")]


def test_a_suspended_gang_has_jobs_and_no_pods() -> None:
    world = World()
    world.start(gang(suspend=True))
    assert (world.jobs(), world.pods()) == (["g-control-0", "g-worker-0"], [])
    assert world.conditions(world.jobset()) == [("Suspended", "True", "SuspendedJobs")]
    assert world.conditions(world.job("g-worker-0")) == [("Suspended", "True", "JobSuspended")]


def test_suspension_deletes_pods_without_counting_failures_and_resumption_starts_anew() -> None:
    world = World()
    world.start(gang())
    suspend(world, True)
    world.finish_deletions()
    assert (world.pods(), world.job("g-worker-0")["status"].get("failed")) == ([], None)
    assert world.conditions(world.jobset()) == [("Suspended", "True", "SuspendedJobs")]
    suspend(world, False)
    assert len(world.pods()) == 4
    assert world.conditions(world.jobset()) == [("Suspended", "False", "ResumeJobs")]
    assert world.conditions(world.job("g-worker-0")) == [("Suspended", "False", "JobResumed")]


@pytest.mark.parametrize(
    ("code", "expected"),
    [pytest.param(143, [("Failed", "True", "FailedJobs")], id="fails"), pytest.param(0, [], id="does not")],
)
def test_a_suspended_job_with_a_policy_fails_for_a_pod_seen_between_its_end_and_its_removal(
    code: int, expected: list[tuple[str, str, str]]
) -> None:
    """Seen on Kubernetes 1.37: the pods that a suspension deletes are not counted, but the podFailurePolicy reads them."""
    world = World()
    world.start(gang(job={"podFailurePolicy": {"rules": FAIL_JOB_RULES}}))
    suspend(world, True)
    world.end(world.pod("g-worker-0-0"), code)
    world.advance(1.5)
    for pod in world.pods():
        world.finish_deletion(pod, code)
    found = [one for one in world.conditions(world.jobset()) if one[0] != "Suspended"]
    assert found == expected


def suspend(world: World, value: bool) -> None:
    world.store.modify(JOBSETS, "default", "g", lambda found: found["spec"].update(suspend=value))
    world.settle()


def test_in_order_workers_wait_until_control_is_ready() -> None:
    world = World()
    world.start(gang(startupPolicy={"startupPolicyOrder": "InOrder"}), running=False)
    assert world.jobs() == ["g-control-0"]
    assert world.conditions(world.jobset()) == [("StartupPolicyInProgress", "True", "InOrderStartupPolicyInProgress")]
    world.run(world.pod("g-control-0-0"))
    assert world.jobs() == ["g-control-0", "g-worker-0"]
    for pod in world.pods():
        world.run(pod)
    assert world.conditions(world.jobset()) == [
        ("StartupPolicyInProgress", "False", "InOrderStartupPolicyInProgress"),
        ("StartupPolicyCompleted", "True", "InOrderStartupPolicyCompleted"),
    ]


def test_success_of_the_target_ends_the_others() -> None:
    world = World()
    world.start(gang(successPolicy={"operator": "All", "targetReplicatedJobs": ["control"]}))
    succeed(world, "g-control-0-0")
    world.finish_deletions()
    assert world.conditions(world.jobset()) == [("Completed", "True", "AllJobsCompleted")]
    assert world.jobs() == ["g-control-0"]


def fail_worker(world: World) -> None:
    world.end(world.pod("g-worker-0-2"), 3)
    world.finish_deletions()


def test_a_restart_makes_all_jobs_anew_and_the_second_failure_is_final() -> None:
    world = World()
    world.start(gang(failurePolicy={"maxRestarts": 1}))
    fail_worker(world)
    world.finish_deletions()
    assert (world.jobset()["status"]["restarts"], world.jobset()["status"].get("conditions")) == (1, None)
    assert {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in world.pods()} == {"1"}
    text = f"applying RestartJobSet failure policy action {FIRST}"
    assert world.events("g", "RestartJobSetFailurePolicyAction") == [("RestartJobSetFailurePolicyAction", text)]
    fail_worker(world)
    assert world.conditions(world.jobset()) == [("Failed", "True", "ReachedMaxRestarts")]


@pytest.mark.parametrize(
    ("strategy", "overlaps"),
    [pytest.param("Recreate", True, id="recreate overlaps"), pytest.param("BlockingRecreate", False, id="blocking waits")],
)
def test_whether_attempts_overlap(strategy: str, overlaps: bool) -> None:
    world = World()
    world.start(gang(failurePolicy={"maxRestarts": 1, "restartStrategy": strategy}))
    fail_worker(world)  # control of the first attempt has not ended yet
    attempts = {pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in world.pods()}
    assert attempts == ({"0", "1"} if overlaps else {"0"})


def test_a_disruption_restarts_without_using_up_restarts() -> None:
    rule = {
        "name": "disruption",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
        "onJobFailureMessagePatterns": [".*has condition DisruptionTarget.*"],
    }
    world = World()
    job = {"podFailurePolicy": {"rules": FAIL_JOB_RULES}}
    world.start(gang(job=job, failurePolicy={"maxRestarts": 0, "rules": [rule]}))
    world.disrupt(world.pod("g-worker-0-1"))
    world.finish_deletions()
    world.finish_deletions()
    assert world.jobset()["status"]["restarts"] == 1
    assert "restartsCountTowardsMax" not in world.jobset()["status"]
    fail_worker(world)
    assert world.conditions(world.jobset()) == [("Failed", "True", "ReachedMaxRestarts")]


def test_a_missing_job_is_made_again() -> None:
    world = World()
    world.start(gang())
    uid = world.job("g-worker-0")["metadata"]["uid"]
    world.store.delete(JOBS, "default", "g-worker-0", propagation="Background")
    world.settle()
    assert world.job("g-worker-0")["metadata"]["uid"] != uid


def test_a_refused_job_leaves_the_status_absent_and_the_other_job_running() -> None:
    world = World()
    bad = gang()
    bad["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["metadata"] = {"labels": {"a": "b c"}}
    world.start(bad, running=False)
    world.advance(1, step=0.01)
    assert "status" not in world.jobset()
    assert world.jobs() == ["g-control-0"]
    (reason, message), *rest = world.events("g")
    assert (reason, rest) == ("JobCreationFailed", [])
    assert message.startswith('job "g-worker-0" creation failed with error: Job.batch "g-worker-0" is invalid: ')
    (event,) = [e for e in world.store.list("events", "default") if e["reason"] == "JobCreationFailed"]
    assert event["count"] > 3


def test_a_quota_refuses_pods_and_the_job_says_so() -> None:
    world = World()
    world.create("resourcequotas", {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": {"pods": "2"}}})
    world.start(gang(), running=False)
    text = 'Error creating: pods "g-worker-0-1-'
    assert any(message.startswith(text) and "exceeded quota: q" in message for _, message in world.events("g-worker-0"))
    assert "conditions" not in world.job("g-worker-0")["status"]


def test_ttl_removes_everything_in_the_foreground() -> None:
    world = World()
    world.start(gang(ttlSecondsAfterFinished=3))
    succeed(world)
    world.advance(2)
    assert world.jobs()
    world.advance(2)
    assert (world.jobs(), world.pods(), world.store.list(JOBSETS), world.store.find("services", "default", "g")) == (
        [],
        [],
        [],
        None,
    )


def test_a_ttl_on_child_jobs_runs_them_again() -> None:
    world = World()
    world.start(gang(job={"ttlSecondsAfterFinished": 2}))
    succeed(world, "g-worker-0-0", "g-worker-0-1", "g-worker-0-2")
    assert world.counts("g", "worker") == "a0 r0 s1 f0"
    world.advance(3)
    assert world.counts("g", "worker") == "a1 r0 s0 f0"


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
def test_deletion_takes_everything(policy: str) -> None:
    world = World()
    world.start(gang())
    world.store.delete(JOBSETS, "default", "g", propagation=policy)
    world.settle()
    is_there = world.store.find(JOBSETS, "default", "g") is not None
    assert is_there == (policy == "Foreground")
    world.finish_deletions()
    assert (world.jobs(), world.pods(), world.store.find(JOBSETS, "default", "g")) == ([], [], None)


def test_a_lost_node_never_fails_the_jobset() -> None:
    world = World()
    tolerations = [
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    ]
    lost = gang()
    for rjob in lost["spec"]["replicatedJobs"]:
        rjob["template"]["spec"]["template"]["spec"]["tolerations"] = tolerations
    world.start(lost)
    node = world.pod("g-worker-0-1")["spec"]["nodeName"]
    on_node = [pod["metadata"]["name"] for pod in world.pods() if pod["spec"]["nodeName"] == node]
    world.store.modify("nodes", None, node, mark_unknown, status_only=True)
    world.settle()
    world.advance(6)
    gone = world.store.get("pods", "default", on_node[0])
    disruption = next(c for c in gone["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert disruption["reason"] == "DeletionByTaintManager"
    assert gone["metadata"]["deletionTimestamp"]
    world.advance(60)
    assert "conditions" not in world.jobset()["status"]
    world.store.delete("nodes", None, node)
    world.advance(5)
    assert world.store.find("pods", "default", on_node[0]) is None


def mark_unknown(node: Object) -> None:
    for condition in node["status"]["conditions"]:
        if condition["type"] == "Ready":
            condition["status"] = "Unknown"


def test_an_unschedulable_pod_says_why_and_stays() -> None:
    world = World()
    big = gang()
    big["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"nvidia.com/gpu": "1"},
        "limits": {"nvidia.com/gpu": "1"},
    }
    world.start(big, running=False)
    condition = next(c for c in world.pod("g-worker-0-0")["status"]["conditions"] if c["type"] == "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"].startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: ")
    assert world.counts("g", "worker") == "a1 r0 s0 f0"
