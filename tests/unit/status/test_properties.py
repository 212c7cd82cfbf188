"""Whatever happens to what is observed - lines lost, swapped, repeated, cut off, fields of a wrong type - a verdict is never an
exception, never terminal without a cause, and never success for a gang that failed."""

from __future__ import annotations

import copy
import gzip
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.status.job import job_status
from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Observation, Phase, PodRecord, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.pods import remember
from metaflow_extensions.kubernetes_ext.status.trace import observations, parse_trace
from metaflow_extensions.kubernetes_ext.status.transitions import transitions
from tests.builders_objects import (
    condition,
    make_event,
    make_gang_pods,
    make_job,
    make_jobset,
    make_plain_job,
    make_pod,
    make_queued,
    moment,
    observe,
)

TRACES = Path(__file__).parents[2] / "traces"
# Those of each kind whose verdict hangs on order and completeness.
STUDIED = (
    "success",
    "worker_and_control_fail",
    "node_lost_pfp",
    "restart_exhausted",
    "kueue_deactivated",
    "worker_deleted",
    "ttl_job",
)
FAILING = ("worker_and_control_fail", "node_lost_pfp", "restart_exhausted", "worker_deleted", "worker_fail", "control_oom")
QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@cache
def entries_of(trace: str) -> tuple[dict[str, Any], ...]:
    with gzip.open(TRACES / f"{trace}.s2.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(dict(entry) for entry in parse_trace(lines))


def judge_all(entries: list[dict[str, Any]]) -> list[tuple[Observation, WorkloadStatus]]:
    """Also asks for every line to be told, as a monitor does."""
    judged: list[tuple[Observation, WorkloadStatus]] = []
    for observation in observations(entries, workload="g"):
        previous = judged[-1][1] if judged else None
        status = jobset_status(observation, previous)
        transitions(previous, status)
        judged.append((observation, status))
    return judged


def check(judged: list[tuple[Observation, WorkloadStatus]]) -> None:
    previous: WorkloadStatus | None = None
    for observation, status in judged:
        if previous and previous.is_terminal:
            assert status.phase is previous.phase
        elif status.is_terminal:
            assert is_allowed(observation, status)
        assert status.failure is not None or status.phase not in (Phase.FAILED, Phase.GONE)
        previous = status


def is_allowed(observation: Observation, status: WorkloadStatus) -> bool:
    """The verdict rules, from the objects themselves."""
    if status.phase is Phase.GONE:
        return observation.workload is None and observation.was_seen
    if status.phase is Phase.SUCCEEDED:
        succeeded = [one for one in observation.pods if one.object["status"].get("phase") == "Succeeded"]
        return "Completed" in true_of(observation.workload) or len(succeeded) >= status.size > 0
    targets = [kind for job in observation.jobs for kind in true_of(job)]
    lost = [one for one in observation.pods if "DisruptionTarget" in true_of(one.object)]
    return "Failed" in true_of(observation.workload) or "FailureTarget" in targets or "Failed" in targets or bool(lost)


def true_of(obj: Any) -> set[str]:
    return {one["type"] for one in (obj or {}).get("status", {}).get("conditions") or [] if one["status"] == "True"}


@QUICK
@given(trace=st.sampled_from(STUDIED), data=st.data())
def test_lines_may_be_lost(trace: str, data: st.DataObject) -> None:
    entries = entries_of(trace)
    kept = data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    check(judge_all([entry for entry, keep in zip(entries, kept, strict=True) if keep]))


@QUICK
@given(trace=st.sampled_from(STUDIED), data=st.data())
def test_lines_may_come_twice_and_end_anywhere(trace: str, data: st.DataObject) -> None:
    entries = entries_of(trace)
    end = data.draw(st.integers(0, len(entries)))
    twice = data.draw(st.sets(st.integers(0, len(entries))))
    check(judge_all([entry for index, entry in enumerate(entries[:end]) for _ in range(2 if index in twice else 1)]))


@QUICK
@given(trace=st.sampled_from(STUDIED), data=st.data())
def test_streams_may_lag_behind_each_other(trace: str, data: st.DataObject) -> None:
    """Each kind is one watch: in order in itself, late by any time against the others."""
    lags = {kind: data.draw(st.floats(0, 20)) for kind in ("JobSet", "Job", "Pod", "Event", "Workload")}
    late = [{**entry, "t": entry["t"] + lags.get(entry["object"]["kind"], 0)} for entry in entries_of(trace)]
    check(judge_all(sorted(late, key=lambda entry: entry["t"])))


@QUICK
@given(trace=st.sampled_from(FAILING), data=st.data())
def test_a_failed_gang_never_succeeds(trace: str, data: st.DataObject) -> None:
    """The JobSet's own condition never lies; without it, a rank that failed or vanished is one that did not succeed."""
    lags = {kind: data.draw(st.floats(0, 20)) for kind in ("JobSet", "Job", "Pod")}
    kept = data.draw(st.sets(st.sampled_from(["Job", "Pod", "Event"])))
    entries = [{**one, "t": one["t"] + lags.get(one["object"]["kind"], 0)} for one in entries_of(trace)]
    chosen = [entry for entry in entries if entry["object"]["kind"] in ("JobSet", *kept)]
    assert all(status.phase is not Phase.SUCCEEDED for _, status in judge_all(sorted(chosen, key=lambda entry: entry["t"])))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 10**12),
    st.floats(),
    st.sampled_from(
        ["", "True", "Failed", "3", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "js-1"]
    ),
    st.lists(st.sampled_from(["x", 3, None, {}])),
    st.dictionaries(st.sampled_from(["type", "status", "name", "reason"]), st.sampled_from(["True", "Failed", 3, None, []])),
)


def watched(pod: Any) -> PodRecord:
    """Also one that has lost its name, and would not be remembered."""
    return next(iter(remember({}, "ADDED", pod, moment(0)).values()), PodRecord(object=pod))


def spoil(data: st.DataObject, obj: Any, times: int = 3) -> Any:
    """Some values anywhere in `obj`, replaced by something else, or removed, or new."""
    obj = copy.deepcopy(obj)
    for _ in range(data.draw(st.integers(0, times))):
        place = obj
        while isinstance(place, (dict, list)) and place:
            key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else list(range(len(place)))))
            if not isinstance(place[key], (dict, list)) or data.draw(st.integers(0, 4)) == 0:
                place[key] = data.draw(ODD)
                break
            place = place[key]
    return obj


RICH_JOBSET = make_jobset(
    condition("Suspended", "False"),
    suspend=False,
    restarts=1,
    counters={"control": {"active": 1}, "worker": {"active": 1}},
    failure_policy={"maxRestarts": 2, "rules": [{"action": "RestartJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]},
)
POLICY = "Container main for pod default/js-1-worker-0-2-abcde failed with exit code 3 matching FailJob rule at index 1"
RICH_JOBS = [
    make_job(condition("FailureTarget", reason="PodFailurePolicy", message=POLICY), attempt=1, status={"failedIndexes": "2"}),
    make_job(role="control", attempt=1),
]
RICH_PODS = [
    make_pod("control", attempt=1, deleting_at=5, conditions=[condition("DisruptionTarget", reason="DeletionByTaintManager")]),
    make_pod("worker", 0, "Failed", attempt=1, exit_code=137, reason="OOMKilled"),
    make_pod(
        "worker",
        1,
        "Pending",
        attempt=1,
        waiting="ErrImagePull",
        conditions=[condition("PodScheduled", "False", "Unschedulable", "0/2")],
    ),
    make_pod("worker", 2, "Succeeded", attempt=1, exit_code=0),
]
RICH_EVENTS = [
    make_event("JobCreationFailed", 'job "x" creation failed with error: nope'),
    make_event("PodFailurePolicy", POLICY, RICH_JOBS[0]),
    make_event("FailedCreate", "Error creating: pods", RICH_JOBS[1]),
]
RICH_QUEUE = make_queued(condition("QuotaReserved", "False", "Pending", "no"), checks=[{"name": "c", "state": "Pending"}])


@settings(QUICK, max_examples=150)
@given(data=st.data())
def test_odd_values_are_never_an_exception(data: st.DataObject) -> None:
    observation = observe(
        spoil(data, RICH_JOBSET),
        [watched(spoil(data, pod, 2)) for pod in RICH_PODS],
        jobs=[spoil(data, job, 2) for job in RICH_JOBS],
        events=[spoil(data, event, 2) for event in RICH_EVENTS],
        admission=spoil(data, RICH_QUEUE, 2),
    )
    status = jobset_status(observation)
    again = jobset_status(observation, status)
    assert again.phase is status.phase
    assert transitions(status, again) == [] or not status.is_terminal
    job_status(observation, status)


@settings(QUICK, max_examples=60)
@given(data=st.data())
def test_odd_plain_jobs_are_never_an_exception(data: st.DataObject) -> None:
    job = make_plain_job(condition("Suspended", "False"), completions=2, podFailurePolicy={"rules": [{"action": "Ignore"}]})
    pods = [make_pod(index=0, plain=True), make_pod(index=1, phase="Failed", exit_code=3, plain=True)]
    status = job_status(observe(spoil(data, job), [watched(spoil(data, pod)) for pod in pods]))
    assert status.phase is not Phase.GONE
    transitions(None, status)


@QUICK
@given(kinds=st.lists(st.text(min_size=1, max_size=12).filter(lambda kind: kind not in ("Failed", "Completed")), max_size=4))
def test_unknown_conditions_are_never_terminal(kinds: list[str]) -> None:
    status = jobset_status(observe(make_jobset(*map(condition, kinds)), make_gang_pods()))
    assert status.phase in (Phase.RUNNING, Phase.QUEUED)


@QUICK
@given(
    size=st.integers(1, 6),
    shape=st.sampled_from(["s1", "s2"]),
    phases=st.lists(st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"]), min_size=6, max_size=6),
)
def test_success_by_pods_needs_every_rank(size: int, shape: str, phases: list[str]) -> None:
    groups = {"control": 1, "worker": size - 1} if size > 1 else {"control": 1}
    roles = [("control", 0), *(("worker", index) for index in range(size - 1))]
    codes = {"Succeeded": 0, "Failed": 1}
    pods = [
        make_pod(role, index, phase, exit_code=codes.get(phase), shape=shape)
        for (role, index), phase in zip(roles, phases, strict=False)
    ]
    status = jobset_status(observe(make_jobset(groups=groups, shape=shape), pods))
    assert (status.phase is Phase.SUCCEEDED) is all(phase == "Succeeded" for phase in phases[:size])
    assert [rank.phase for rank in status.ranks] == phases[:size]
