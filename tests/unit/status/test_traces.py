"""Every recorded trace of a real control plane, line by line: sane at every moment, right at the end, right about who and why.

The table was written from tests/traces/README.md and the traces, not from what the code says.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase, PodRecord, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.trace import observations, parse_trace
from metaflow_extensions.kubernetes_ext.status.transitions import transitions

TRACES = Path(__file__).parents[2] / "traces"
SUFFIX = ".s2.jsonl.gz"


@dataclass(frozen=True)
class Truth:
    """`pod` is the culprit's name without its random suffix; `lasts` the phases in their order, without repetitions."""

    end: Phase
    category: str = ""
    role: str = ""
    rank: int | None = None
    pod: str = ""
    exit_code: int | None = None
    reason: str = ""
    restarts: int = 0
    size: int = 4
    waits_for: tuple[str, str, bool] | None = None  # category, a piece of the summary, hopeless; at some moment
    queues: bool = False


S, F, G = Phase.SUCCEEDED, Phase.FAILED, Phase.GONE


def worker(index: int, category: str, exit_code: int | None, reason: str, restarts: int = 0, queues: bool = False) -> Truth:
    """The JobSet fails for worker `index`, rank index + 1."""
    return Truth(F, category, "worker", index + 1, f"g-worker-0-{index}", exit_code, reason, restarts, queues=queues)


TRUTH = {
    "success": Truth(S),
    "control_only": Truth(S, size=1),
    "inorder": Truth(S),
    "success_any_control": Truth(S),
    "ttl": Truth(S),
    "ttl_job": Truth(S),
    "suspend_cycle": Truth(S, waits_for=("unknown", "suspended", False), queues=True),
    "worker_fail_retry": Truth(S),
    "worker_deleted_retry": Truth(S),
    "pfp_disruption_ignored": Truth(S),
    "restart_then_success": Truth(S, restarts=1),
    "restart_blocking": Truth(S, restarts=1),
    "failure_policy_disruption": Truth(S, restarts=1),
    "kueue_queued": Truth(S, waits_for=("quota", "insufficient unused quota", False), queues=True),
    "kueue_deactivated": Truth(S, waits_for=("quota", "deactivated", False), queues=True),
    "worker_fail": worker(2, "user_error", 3, "Error"),
    "worker_fail_slow_peers": worker(2, "user_error", 3, "Error"),
    "worker_fail_perindex": worker(2, "user_error", 3, "Error"),
    "success_any_worker_fails": worker(2, "user_error", 3, "Error"),
    "worker_and_control_fail": worker(1, "user_error", 3, "Error"),
    "pfp_names_pod": worker(1, "user_error", 3, "Error"),
    "pfp_exit_failjob": worker(2, "user_error", 42, "Error"),
    "failure_policy_reason": worker(2, "user_error", 42, "Error"),
    "failure_policy_patterns": worker(2, "user_error", 3, "Error", restarts=1),
    "restart_exhausted": worker(2, "user_error", 3, "Error", restarts=1),
    "kueue_fail": worker(2, "user_error", 3, "Error", queues=True),
    "pfp_names_oom": worker(2, "out_of_memory", 137, "OOMKilled"),
    "pod_deadline": worker(0, "deadline", 137, "DeadlineExceeded"),
    "worker_evicted": worker(1, "evicted", None, "Evicted"),
    "node_lost": worker(1, "node_lost", None, "DeletionByTaintManager"),
    "node_lost_pfp": worker(1, "node_lost", None, "DeletionByTaintManager"),
    "worker_deleted": worker(1, "deleted", 143, "Deleted"),
    "pfp_deleted_by_hand": worker(1, "deleted", 143, "Deleted"),
    "control_fail": Truth(F, "user_error", "control", 0, "g-control-0-0", 1, "Error"),
    "control_oom": Truth(F, "out_of_memory", "control", 0, "g-control-0-0", 137, "OOMKilled"),
    "gang_in_one_job": Truth(F, "user_error", "gang", 2, "g-gang-0-2", 3, "Error"),
    "job_deadline": Truth(F, "deadline", "control", None, "", None, "DeadlineExceeded"),
    "delete_background": Truth(G, "gone", reason="Gone"),
    "delete_foreground": Truth(G, "gone", reason="Gone", waits_for=("gone", "being deleted", False)),
    "bad_volume": Truth(G, "gone", reason="Gone", waits_for=("rejected", 'Not found: "nov"', True)),
    "bad_worker_template": Truth(G, "gone", reason="Gone", waits_for=("rejected", 'Invalid value: "b c"', True)),
    "image_pull": Truth(G, "gone", reason="Gone", waits_for=("image_pull", "Worker 1 (rank 2,", False)),
    "unschedulable": Truth(G, "gone", reason="Gone", waits_for=("unschedulable", "3 of 4 ranks have no node", False)),
    "kueue_inadmissible": Truth(G, "gone", reason="Gone", waits_for=("quota", "maximum capacity", True), queues=True),
    "kueue_no_queue": Truth(G, "gone", reason="Gone", waits_for=("quota", "LocalQueue nope doesn't exist", True), queues=True),
}
# Their verdicts belong to the AppWrapper; read as JobSets they must only not break anything.
APPWRAPPERS = ("aw_deleted", "aw_success", "aw_suspended", "kueue_appwrapper")


@cache
def seen(trace: str) -> tuple[Observation, ...]:
    with gzip.open(TRACES / f"{trace}{SUFFIX}", "rt", encoding="utf-8") as lines:
        return tuple(observations(parse_trace(lines)))


@cache
def judged(trace: str) -> tuple[WorkloadStatus, ...]:
    statuses: list[WorkloadStatus] = []
    for observation in seen(trace):
        statuses.append(jobset_status(observation, statuses[-1] if statuses else None))
    return tuple(statuses)


def test_every_trace_is_in_the_table() -> None:
    assert {path.name.removesuffix(SUFFIX) for path in TRACES.glob(f"*{SUFFIX}")} == {*TRUTH, *APPWRAPPERS}


@pytest.mark.parametrize(("trace", "truth"), [pytest.param(trace, truth, id=trace) for trace, truth in TRUTH.items()])
def test_the_end_has_the_right_phase_and_cause(trace: str, truth: Truth) -> None:
    end = judged(trace)[-1]
    assert (end.phase, end.size, end.restarts) == (truth.end, truth.size, truth.restarts)
    if not truth.category:
        assert end.failure is None
        return
    failure = end.failure
    assert failure is not None
    assert (failure.category.value, failure.role, failure.rank) == (truth.category, truth.role, truth.rank)
    assert failure.pod.rpartition("-")[0] == truth.pod
    assert (failure.exit_code, failure.reason) == (truth.exit_code, truth.reason)
    for word in filter(None, (failure.pod, failure.node, f"rank {failure.rank}" if failure.rank is not None else "")):
        assert word in failure.summary
    assert failure.summary.endswith(".")
    assert failure.resolution.endswith(".")


@pytest.mark.parametrize("trace", [pytest.param(name, id=name) for name, truth in TRUTH.items() if truth.waits_for])
def test_waiting_is_explained_while_it_lasts(trace: str) -> None:
    wanted = TRUTH[trace].waits_for
    assert wanted is not None
    category, words, is_hopeless = wanted
    reasons = [status.waiting for status in judged(trace) if status.waiting]
    assert any((one.category.value, one.is_hopeless) == (category, is_hopeless) and words in one.summary for one in reasons)


@pytest.mark.parametrize("trace", [pytest.param(name, id=name) for name, truth in TRUTH.items()])
def test_only_kueue_and_suspension_queue(trace: str) -> None:
    assert any(status.phase is Phase.QUEUED for status in judged(trace)) is TRUTH[trace].queues


@pytest.mark.parametrize("trace", [*TRUTH, *APPWRAPPERS])
def test_every_prefix_is_sane(trace: str) -> None:
    previous: WorkloadStatus | None = None
    for observation, status in zip(seen(trace), judged(trace), strict=True):
        if previous and previous.is_terminal:
            assert status.phase is previous.phase
        elif status.is_terminal:
            assert has_cause(observation, status.phase)
        if status.phase is Phase.RUNNING:
            assert len(status.ranks) == status.size
        if not status.is_terminal:
            assert status.failure is None
        assert [rank.rank for rank in status.ranks] == sorted({rank.rank for rank in status.ranks})
        previous = status


@pytest.mark.parametrize("trace", list(TRUTH))
def test_each_prefix_alone_tells_the_same_end(trace: str) -> None:
    """Without the verdict before: what is terminal by then does not hang on having been asked at every moment."""
    end = judged(trace)[-1]
    first = next(index for index, status in enumerate(judged(trace)) if status.is_terminal)
    alone = jobset_status(seen(trace)[first])
    assert alone.phase is end.phase
    assert alone.failure is None or (end.failure and alone.failure.rank == end.failure.rank)


@pytest.mark.parametrize("trace", list(TRUTH))
def test_a_user_hears_little_and_nothing_twice(trace: str) -> None:
    lines: list[str] = []
    previous: WorkloadStatus | None = None
    for status in judged(trace):
        lines += [str(change) for change in transitions(previous, status)]
        assert transitions(status, status) == []
        previous = status
    assert len(lines) <= 25
    assert all(one != other for one, other in itertools.pairwise(lines))


@pytest.mark.parametrize(
    ("trace", "at_most"),
    [
        pytest.param("worker_fail_slow_peers", 3.0, id="9 s before the JobSet says so, which waits for slow peers"),
        pytest.param("node_lost", 20.0, id="100 s before the JobSet says so, which waits for a lost node"),
        pytest.param("node_lost_pfp", 31.0, id="50 s before the JobSet says so, and the Job says nothing"),
    ],
)
def test_a_failure_is_told_before_the_jobset_does(trace: str, at_most: float) -> None:
    first = next(at for at, status in zip(seen(trace), judged(trace), strict=True) if status.phase is Phase.FAILED)
    assert (first.at - seen(trace)[0].at).total_seconds() < at_most


def has_cause(observation: Observation, phase: Phase) -> bool:
    """Whether what was recorded so far allows for this verdict; says nothing about who is to blame."""
    if phase is Phase.GONE:
        return observation.workload is None and observation.was_seen
    workload = observation.workload or {}
    if phase is Phase.SUCCEEDED:
        return "Completed" in true_conditions(workload) or all_pods_succeeded(observation.pods)
    jobs = [kind for job in observation.jobs for kind in true_conditions(job)]
    return "Failed" in true_conditions(workload) or "FailureTarget" in jobs or any(map(is_disrupted, observation.pods))


def true_conditions(obj: object) -> set[str]:
    status = obj.get("status") or {} if isinstance(obj, dict) else {}
    return {entry["type"] for entry in status.get("conditions") or [] if entry["status"] == "True"}


def all_pods_succeeded(pods: Iterable[PodRecord]) -> bool:
    """At least as many as there are ranks, in each of these traces 4 or 1."""
    succeeded = [one for one in pods if one.object["status"].get("phase") == "Succeeded"]
    return len(succeeded) in (1, 4) or len(succeeded) > 4


def is_disrupted(record: PodRecord) -> bool:
    return "DisruptionTarget" in true_conditions(record.object) and "deletionTimestamp" in record.object["metadata"]
