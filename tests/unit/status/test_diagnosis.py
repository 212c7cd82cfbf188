"""Who failed first and why, in words: one row for each kind of evidence, and for each trap in it."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.causes import cause_of_exit, log_tail
from metaflow_extensions.kubernetes_ext.status.diagnosis import of_waiting
from metaflow_extensions.kubernetes_ext.status.ends import End
from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, Waiting
from tests.builders_objects import (
    condition,
    make_event,
    make_gang_pods,
    make_job,
    make_jobset,
    make_pod,
    moment,
    observe,
    record,
    stamp,
)

FAILED = condition("Failed", reason="FailedJobs", message="jobset failed due to ... (first failed job: js-1-control-0)", at=30)


def disrupted(reason: str, message: str = "") -> dict[str, Any]:
    return condition("DisruptionTarget", reason=reason, message=message, at=9)


def failure_of(*pods: Any, jobs: Any = (), events: Any = (), jobset: Any = None) -> Failure:
    status = jobset_status(observe(jobset or make_jobset(FAILED), pods, jobs=jobs, events=events, at=40))
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    return status.failure


@pytest.mark.parametrize(
    ("pod", "category", "summary"),
    [
        pytest.param(
            make_pod("control", phase="Failed", exit_code=137, reason="OOMKilled"),
            "out_of_memory",
            "Control (rank 0, pod js-1-control-0-0-abcde on node-1) ran out of memory (OOMKilled, exit code 137).",
            id="control out of memory",
        ),
        pytest.param(
            make_pod("worker", 1, "Failed", exit_code=137, reason="OOMKilled", node="node-7"),
            "out_of_memory",
            "Worker 1 (rank 2, pod js-1-worker-0-1-abcde on node-7) ran out of memory (OOMKilled, exit code 137).",
            id="worker out of memory",
        ),
        pytest.param(
            make_pod("worker", 1, "Failed", exit_code=0, reason="OOMKilled"),
            "out_of_memory",
            "ran out of memory (OOMKilled, exit code 0).",
            id="a child process was killed, its parent ended with 0",
        ),
        pytest.param(
            make_pod("worker", 1, "Failed", exit_code=137),
            "unknown",
            "was killed (SIGKILL, exit code 137), and Kubernetes does not say by whom.",
            id="137 alone is not out of memory",
        ),
        pytest.param(
            make_pod(
                "worker",
                1,
                "Failed",
                pod_reason="Evicted",
                pod_message="The node was low on resource: memory.",
                conditions=[disrupted("TerminationByKubelet")],
            ),
            "evicted",
            "Worker 1 (rank 2, pod js-1-worker-0-1-abcde on node-1) was evicted by its node: The node was low on resource: memory.",
            id="evicted, without container states",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=137, pod_reason="DeadlineExceeded", activeDeadlineSeconds=60),
            "deadline",
            "timed out after 60 s (DeadlineExceeded, exit code 137).",
            id="the pod's deadline is not out of memory",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=143, conditions=[disrupted("PreemptionByScheduler")], deleting_at=9),
            "preempted",
            "was preempted by a pod of higher priority.",
            id="preempted by the scheduler",
        ),
        pytest.param(
            make_pod(
                "worker",
                0,
                "Failed",
                exit_code=143,
                conditions=[disrupted("EvictionByEvictionAPI", "Eviction API: evicting")],
                deleting_at=9,
            ),
            "evicted",
            "was evicted from its node (a drain, or an autoscaler): Eviction API: evicting.",
            id="drained",
        ),
        pytest.param(
            make_pod("worker", 0, conditions=[disrupted("DeletionByTaintManager", "Taint manager: deleting")], deleting_at=9),
            "node_lost",
            "was lost with its node, which no longer answers.",
            id="its node is lost: it never ended",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=143, conditions=[disrupted("DeletionByTaintManager")], deleting_at=9),
            "evicted",
            "was evicted from its node, which was tainted.",
            id="its node was tainted, and alive: it ended",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", conditions=[disrupted("DeletionByPodGC")], deleting_at=9),
            "node_lost",
            "was lost with its node, which is gone.",
            id="its Node object is gone",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=1, conditions=[disrupted("Surprise")]),
            "evicted",
            "was disrupted by Kubernetes (Surprise).",
            id="an unknown disruption",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", pod_reason="NodeLost"), "node_lost", "was lost with its node.", id="reason NodeLost"
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", pod_reason="Preempting", pod_message="Preempted in order to admit critical pod"),
            "preempted",
            "had to make room for a pod of higher priority: Preempted in order to admit critical pod.",
            id="preempted by its kubelet",
        ),
        pytest.param(
            make_pod(
                "worker",
                0,
                "Failed",
                exit_code=143,
                pod_reason="Terminated",
                pod_message="Pod was terminated in response to imminent node shutdown.",
            ),
            "evicted",
            "ended because its node was shut down: Pod was terminated in response to imminent node shutdown.",
            id="the node was shut down",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", pod_reason="OutOfcpu"),
            "unschedulable",
            "was refused by its node (OutOfcpu).",
            id="OutOfcpu",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=7, pod_reason="Novelty", pod_message="what is this"),
            "unknown",
            "failed (Novelty, exit code 7): what is this.",
            id="an unknown reason is kept as text",
        ),
        pytest.param(make_pod("worker", 0, "Failed", exit_code=3), "user_error", "failed with exit code 3.", id="exit code 3"),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=139),
            "user_error",
            "crashed with a segmentation fault (SIGSEGV, exit code 139).",
            id="segmentation fault",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=134), "user_error", "aborted itself (SIGABRT, exit code 134).", id="abort"
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=135),
            "user_error",
            "could not be had (SIGBUS, exit code 135).",
            id="bus error",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=143),
            "user_error",
            "ended on a SIGTERM (exit code 143), though nobody had deleted its pod.",
            id="SIGTERM by itself",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=128, reason="StartError", message="exec: no such file"),
            "user_error",
            "could not start its command (StartError, exit code 128): exec: no such file.",
            id="its command is not there",
        ),
        pytest.param(
            make_pod("worker", 0, "Failed", exit_code=137, reason="ContainerStatusUnknown"),
            "node_lost",
            "was lost by its node (ContainerStatusUnknown, exit code 137).",
            id="the node lost track of it",
        ),
        pytest.param(
            make_pod("worker", 0, "Running", exit_code=3), "user_error", "failed with exit code 3.", id="a sidecar still runs"
        ),
        pytest.param(make_pod("worker", 0, "Failed"), "unknown", "ended, and nothing says why.", id="nothing says why"),
    ],
)
def test_what_happened_in_plain_words(pod: Any, category: str, summary: str) -> None:
    failure = failure_of(pod)
    assert failure.category.value == category
    assert failure.summary.endswith(summary)
    assert failure.resolution.endswith(".")
    assert failure.pod == pod["metadata"]["name"]
    assert "{" not in failure.summary + failure.resolution


def test_out_of_memory_names_step_and_limit() -> None:
    containers = [{"name": "main", "resources": {"limits": {"memory": "4096M"}}}]
    pod = make_pod("worker", 0, "Failed", exit_code=137, reason="OOMKilled", containers=containers)
    pod["metadata"]["annotations"] = {"metaflow.org/step": "train"}
    assert failure_of(pod).resolution == "Raise @resources(memory=...) for step train; its limit was 4096M."


def test_an_init_container_is_named() -> None:
    pod = make_pod("worker", 0, "Failed")
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": stamp(5)}}
    pod["status"] |= {"containerStatuses": [], "initContainerStatuses": [{"name": "fetch", "state": ended}]}
    assert failure_of(pod).summary.endswith("failed with exit code 1 in its init container fetch.")


class TestWhoWasFirst:
    def test_the_victim_named_by_the_jobset_is_not_blamed(self) -> None:
        """Worker 2 exits 3, the JobSet then kills control; its message names control."""
        worker = record(make_pod("worker", 2), make_pod("worker", 2, "Failed", exit_code=3, finished_at=1))
        killed = record(
            make_pod("control"),
            make_pod("control", deleting_at=2),
            make_pod("control", phase="Failed", exit_code=137, deleting_at=2),
        )
        failure = failure_of(killed, worker)
        assert (failure.role, failure.rank, failure.exit_code) == ("worker", 3, 3)

    def test_the_watch_knows_better_than_whole_seconds(self) -> None:
        control = record(make_pod("control"), make_pod("control", phase="Failed", exit_code=1), at=0.3)
        worker = record(make_pod("worker", 1), make_pod("worker", 1, "Failed", exit_code=3), at=0)
        assert failure_of(control, worker).rank == 2

    def test_a_list_goes_by_the_times_in_the_objects(self) -> None:
        control = make_pod("control", phase="Failed", exit_code=1, finished_at=12)
        worker = make_pod("worker", 1, "Failed", exit_code=3, finished_at=11)
        assert failure_of(control, worker).rank == 2

    def test_in_the_same_second_what_has_a_name_goes_first(self) -> None:
        control = make_pod("control", phase="Failed", exit_code=1)
        worker = make_pod("worker", 1, "Failed", exit_code=137, reason="OOMKilled")
        assert failure_of(control, worker).category is Category.OUT_OF_MEMORY

    def test_a_deletion_by_hand_before_the_end_of_others(self) -> None:
        deleted = record(make_pod("worker", 1), make_pod("worker", 1, deleting_at=1), at=0)
        victim = record(make_pod("control"), make_pod("control", phase="Failed", exit_code=1), at=4)
        failure = failure_of(victim, deleted)
        assert (failure.rank, failure.category) == (2, Category.DELETED)

    def test_a_pod_that_was_deleted_after_its_end_ended_by_itself(self) -> None:
        """As JobSet does with Jobs that have not failed yet when it fails."""
        worker = record(
            make_pod("worker", 1),
            make_pod("worker", 1, "Failed", exit_code=3),
            make_pod("worker", 1, "Failed", exit_code=3, deleting_at=14),
            deleted=True,
        )
        control = record(make_pod("control"), make_pod("control", phase="Failed", exit_code=1), at=5)
        failure = failure_of(control, worker)
        assert (failure.rank, failure.exit_code) == (2, 3)

    def test_after_the_fact_the_end_must_lie_before_the_deletion(self) -> None:
        worker = make_pod("worker", 1, "Failed", exit_code=3, finished_at=10, deleting_at=14)
        control = make_pod("control", phase="Failed", exit_code=143, finished_at=15, deleting_at=14)
        assert failure_of(control, worker).rank == 2

    def test_a_pod_that_was_replaced_is_not_blamed(self) -> None:
        replaced = make_pod("worker", 0, "Failed", exit_code=5, suffix="first", finished_at=3)
        again = make_pod("worker", 0, suffix="again", created_at=4)
        last = make_pod("worker", 2, "Failed", exit_code=7, finished_at=9)
        assert failure_of(replaced, again, last).rank == 3

    def test_pods_of_the_attempt_before_are_not_blamed(self) -> None:
        old = make_pod("worker", 0, "Failed", exit_code=5, attempt=0)
        new = make_pod("worker", 2, "Failed", exit_code=7, attempt=1)
        failure = failure_of(old, new, jobset=make_jobset(FAILED, restarts=1))
        assert (failure.rank, failure.exit_code) == (3, 7)

    def test_a_drain_long_after_the_end_explains_nothing(self) -> None:
        late = condition("DisruptionTarget", reason="EvictionByEvictionAPI", at=300)
        assert (
            failure_of(make_pod("worker", 1, "Failed", exit_code=3, finished_at=10, conditions=[late])).category
            is Category.USER_ERROR
        )


class TestWithoutPods:
    """After the fact, or where pods can't be read: what Jobs and Events say."""

    policy = "Container main for pod default/js-1-worker-0-2-xyz12 failed with exit code 3 matching FailJob rule at index 1"

    def test_the_job_names_pod_and_code(self) -> None:
        job = make_job(condition("FailureTarget", reason="PodFailurePolicy", message=self.policy))
        failure = failure_of(jobs=[job])
        assert failure.summary == "Worker 2 (rank 3, pod js-1-worker-0-2-xyz12) failed with exit code 3."
        assert (failure.role, failure.rank, failure.exit_code, failure.category) == ("worker", 3, 3, Category.USER_ERROR)

    def test_an_event_outlives_its_job(self) -> None:
        assert failure_of(events=[make_event("PodFailurePolicy", self.policy, make_job())]).rank == 3

    def test_the_first_of_several_is_the_culprit(self) -> None:
        second = self.policy.replace("worker-0-2-xyz12", "control-0-0-qqqqq").replace("code 3", "code 1")
        events = [
            make_event("PodFailurePolicy", second, make_job(role="control"), at=12),
            make_event("PodFailurePolicy", self.policy, make_job(), at=11),
        ]
        assert failure_of(events=events).rank == 3

    def test_a_disruption(self) -> None:
        message = "Pod default/js-1-worker-0-1-xyz12 has condition DisruptionTarget matching FailJob rule at index 0"
        failure = failure_of(jobs=[make_job(condition("Failed", reason="PodFailurePolicy", message=message))])
        assert (failure.rank, failure.category, failure.exit_code) == (2, Category.EVICTED, None)

    def test_sigterm_of_a_pod_that_is_gone_was_a_deletion(self) -> None:
        failure = failure_of(events=[make_event("PodFailurePolicy", self.policy.replace("code 3", "code 143"), make_job())])
        assert (failure.category, failure.exit_code) == (Category.DELETED, 143)

    def test_137_of_a_pod_that_is_gone_is_not_called_out_of_memory(self) -> None:
        failure = failure_of(events=[make_event("PodFailurePolicy", self.policy.replace("code 3", "code 137"), make_job())])
        assert (failure.category, failure.exit_code) == (Category.UNKNOWN, 137)

    def test_a_culprit_that_vanished_unseen_is_named_though_a_victim_was_seen(self) -> None:
        vanished = record(make_pod("worker", 2, suffix="xyz12"), deleted=True, at=9)
        victim = record(make_pod("control"), make_pod("control", phase="Failed", exit_code=1), at=0)
        failure = failure_of(victim, vanished, events=[make_event("PodFailurePolicy", self.policy, make_job())])
        assert (failure.rank, failure.exit_code, failure.node) == (3, 3, "node-1")

    def test_events_of_the_attempt_before_are_not_evidence(self) -> None:
        event = make_event("PodFailurePolicy", self.policy, make_job(attempt=0))
        failure = failure_of(events=[event], jobs=[make_job(attempt=1)], jobset=make_jobset(FAILED, restarts=1))
        assert failure.pod == ""

    def test_events_of_others_are_not_evidence(self) -> None:
        """Of another workload, or of an earlier one of the same name."""
        other = make_event("PodFailurePolicy", self.policy, make_job(jobset="other"))
        earlier = make_event("PodFailurePolicy", self.policy, make_job(), at=-60)
        assert failure_of(events=[other, earlier]).pod == ""

    def test_sigterm_of_a_pod_that_still_seems_to_run_is_its_own(self) -> None:
        """The watch of pods is behind that of Jobs."""
        event = make_event("PodFailurePolicy", self.policy.replace("code 3", "code 143"), make_job())
        failure = failure_of(make_pod("worker", 2, suffix="xyz12"), events=[event])
        assert (failure.category, failure.rank) == (Category.USER_ERROR, 3)

    def test_a_pod_of_unknown_name_is_named_all_the_same(self) -> None:
        message = self.policy.replace("js-1-worker-0-2-xyz12", "strange")
        assert (
            failure_of(events=[make_event("PodFailurePolicy", message, make_job())]).summary
            == "Pod strange failed with exit code 3."
        )

    def test_failed_indexes(self) -> None:
        job = make_job(condition("FailureTarget", reason="MaxFailedIndexesExceeded"), status={"failedIndexes": "2"})
        assert failure_of(jobs=[job]).rank == 3

    def test_the_jobs_own_deadline(self) -> None:
        """Its pods are deleted for it, by nobody's hand."""
        job = make_job(condition("FailureTarget", reason="DeadlineExceeded", at=9), role="worker", activeDeadlineSeconds=7)
        failure = failure_of(*make_gang_pods(deleting_at=9), jobs=[job])
        assert (failure.category, failure.rank) == (Category.DEADLINE, None)
        assert failure.summary == "A rank of worker timed out after 7 s (DeadlineExceeded, Job js-1-worker-0)."

    def test_only_the_jobset_says_something(self) -> None:
        failure = failure_of()
        assert (failure.category, failure.role, failure.rank) == (Category.UNKNOWN, "control", 0)

    def test_a_job_per_worker_names_its_rank(self) -> None:
        failed = condition("Failed", message="jobset failed ... (first failed job: js-1-worker-2)")
        assert failure_of(jobset=make_jobset(failed, shape="s1")).rank == 3

    def test_one_job_of_workers_does_not(self) -> None:
        failed = condition("Failed", message="jobset failed ... (first failed job: js-1-worker-0)")
        failure = failure_of(jobset=make_jobset(failed))
        assert (failure.role, failure.rank) == ("worker", None)


@pytest.mark.parametrize("shape", ["s1", "s2"])
def test_both_shapes_name_the_same_rank(shape: str) -> None:
    pods = [make_pod("control", shape=shape), make_pod("worker", 1, "Failed", exit_code=3, shape=shape)]
    failure = failure_of(*pods, jobset=make_jobset(FAILED, shape=shape))
    assert (failure.role, failure.rank) == ("worker", 2)
    assert failure.summary.startswith("Worker 1 (rank 2, pod js-1-worker-")


def test_ranks_follow_the_order_of_groups_in_the_spec() -> None:
    groups = {"trainer": 2, "reader": 3}
    failure = failure_of(make_pod("reader", 1, "Failed", exit_code=3), jobset=make_jobset(FAILED, groups=groups))
    assert failure.summary.startswith("Reader 1 (rank 3, ")


def test_what_was_given_up_becomes_a_failure() -> None:
    waiting = Waiting(category=Category.IMAGE_PULL, summary="No image.", detail="Correct it.", is_hopeless=True)
    failure = of_waiting(waiting, moment(1))
    assert (failure.category, failure.summary, failure.resolution, failure.is_retryable) == (
        Category.IMAGE_PULL,
        "No image.",
        "Correct it.",
        False,
    )


def test_the_end_of_a_program_s_log_is_no_part_of_the_sentence() -> None:
    """terminationMessagePolicy FallbackToLogsOnError puts it into the container's status."""
    end = End(exit_code=3, reason="Error", message="hello\n  about to fail\n")
    assert cause_of_exit(end).what == "failed with exit code 3"
    assert log_tail(end) == ("hello", "  about to fail")


def test_what_the_runtime_says_of_a_command_that_never_ran_is() -> None:
    end = End(exit_code=128, reason="StartError", message="no such file")
    assert cause_of_exit(end).what == "could not start its command (StartError, exit code 128): no such file"
    assert log_tail(end) == ()


@pytest.mark.parametrize(
    ("node", "rank"),
    [
        pytest.param("node-1", 2, id="of one node: its kubelet may tell late, its clock is right"),
        pytest.param("node-2", 0, id="of two nodes, whose clocks may differ: the one that was seen first"),
    ],
)
def test_the_first_of_two_that_ended_by_themselves(node: str, rank: int) -> None:
    control = record(make_pod("control", phase="Failed", exit_code=1, finished_at=12), at=13)
    worker = record(make_pod("worker", 1, "Failed", exit_code=3, finished_at=11, node=node), at=14)
    assert failure_of(control, worker).rank == rank
