"""Traces recorded with tests/cluster, of other shapes, sizes, names and kinds than those of test_traces.py, replayed as a user does.

The kubelet is a real one here. The table was written from what each scenario does (tests/traces/README.md), then compared.
"""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.replay import moments, read, summary
from metaflow_extensions.kubernetes_ext.status.trace import parse_trace
from tests.unit.status.test_traces import SUFFIX, TRACES, TRUTH

RECORDED = TRACES / "recorded"
P, Q, St, R, S, F, G = "Pending", "Queued", "Starting", "Running", "Succeeded", "Failed", "Gone"


@dataclass(frozen=True)
class Recorded:
    """`culprit` is category, role, rank, exit code, reason."""

    size: int
    phases: tuple[str, ...]
    culprit: tuple[Any, ...] | None = None


GONE = ("gone", "", None, None, "Gone")
AGAIN = (P, St, R, St, R)
EXPECTED = {
    "gang1_fail": Recorded(1, (P, St, R, F), ("user_error", "control", 0, 9, "Error")),
    "gang2_s1_fail": Recorded(2, (P, St, R, F), ("user_error", "peer", 1, 5, "Error")),
    "gang4_s1_success": Recorded(4, (P, St, R, S)),
    "gang4_s1_deleted_pod": Recorded(4, (P, St, R, F), ("deleted", "worker", 2, None, "Deleted")),
    "gang4_s1_evicted_api": Recorded(4, (P, St, R, F), ("evicted", "worker", 3, None, "EvictionByEvictionAPI")),
    "gang5_oom_pfp": Recorded(5, (P, St, R, F), ("out_of_memory", "worker", 3, 137, "OOMKilled")),
    "gang8_s1_control_first": Recorded(8, (P, St, R, F), ("user_error", "control", 0, 2, "Error")),
    "gang8_worker3_exit5": Recorded(8, (P, St, R, F), ("user_error", "worker", 4, 5, "Error")),
    "three_roles_fail": Recorded(5, (P, St, R, F), ("user_error", "trainer", 4, 11, "Error")),
    "job_success": Recorded(1, (P, St, R, S)),
    "job_fail_ttl": Recorded(1, (P, St, R, F), ("user_error", "task", 0, 3, "Error")),
    "job_retry_success": Recorded(1, (*AGAIN, S)),
    "job_retries_exhausted": Recorded(1, (*AGAIN, F), ("user_error", "task", 0, 4, "Error")),
    "job_onfailure": Recorded(1, (P, St, R, F), ("user_error", "task", 0, 3, "Error")),
    "job_deadline_own": Recorded(1, (P, St, R, F), ("deadline", "task", None, None, "DeadlineExceeded")),
    "job_pod_deadline": Recorded(1, (P, St, R, F), ("deadline", "task", 0, 137, "DeadlineExceeded")),
    "job_parallel_success": Recorded(3, (P, St, R, S)),
    "job_parallel_fail": Recorded(3, (P, St, R, F), ("user_error", "task", None, 6, "Error")),
    "job_indexed_two_at_once": Recorded(4, (*AGAIN, F), ("user_error", "task", 2, 8, "Error")),
    "job_perindex": Recorded(3, (P, St, R, F), ("user_error", "task", 1, 2, "Error")),
    "job_success_policy": Recorded(3, (P, St, R, S)),
    "job_pod_deleted_pfp": Recorded(1, (P, St, R, St, F), ("deleted", "task", 0, 137, "Deleted")),
    "job_evicted_pfp": Recorded(3, (P, St, R, F), ("evicted", "task", 1, 137, "EvictionByEvictionAPI")),
    "job_suspend_running": Recorded(2, (P, St, R, Q, St, R, S)),
    "job_deleted": Recorded(1, (P, St, R, G), GONE),
    "aw5_success_s1": Recorded(5, (P, St, R, S)),
    "aw_fail_retried": Recorded(3, (*AGAIN, St, F), ("user_error", "worker", 2, 5, "Error")),
    "aw_retry_then_success": Recorded(3, (*AGAIN, St, R, S)),  # twice
    "aw_job_fail": Recorded(3, (P, St, R, St, F), ("user_error", "task", 1, 5, "Error")),
    "aw_suspended_only": Recorded(3, (Q,)),
    "kq_job_queued": Recorded(2, (Q, St, R, S)),
    "kq_job_inadmissible": Recorded(2, (Q,)),
    "kq_preempted": Recorded(3, (Q, St, R, Q, St, R, S)),
    "kq_aw_preempted": Recorded(3, (Q, P, St, R, Q, St, R, S)),
    "kq_aw_fail": Recorded(3, (Q, P, St, R, St, F), ("user_error", "worker", 2, 5, "Error")),
    "kq_max_exec": Recorded(3, (Q, St, R, Q)),
    "kq_check_retried": Recorded(3, (Q, St, R, S)),
    "kq_check_rejected": Recorded(3, (Q,)),
    "kq_drained": Recorded(3, (P, St, R, Q, St, R, S)),
    "kq_stopped": Recorded(3, (Q, St, R, Q, G), GONE),
}


def test_every_recording_is_in_the_table() -> None:
    assert {path.name.removesuffix(".jsonl.gz") for path in RECORDED.glob("*.gz")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_has_the_right_phases_and_culprit(name: str) -> None:
    expected = EXPECTED[name]
    found = list(moments(read(RECORDED / f"{name}.jsonl.gz")))
    told = summary(found)
    assert (found[-1].status.size, tuple(phase for _, phase in told["phases"])) == (expected.size, expected.phases)
    failure = told["failure"]
    if expected.culprit is None:
        assert failure is None
        return
    category, role, rank, exit_code, reason = expected.culprit
    assert (failure["category"], failure["role"], failure["exit_code"]) == (category, role, exit_code)
    assert failure["reason"] == reason
    assert failure["rank"] == rank or name == "job_parallel_fail"  # all alike: any of them may be the one
    assert bool(failure["pod"]) is (failure["rank"] is not None)


NAMES = (
    (r"\bg-control\b", "team-red-leader"),
    (r"\bg-worker\b", "team-red-peer"),
    (r'"g"', '"team-red"'),
    (r'"control"', '"leader"'),
    (r'"worker"', '"peer"'),
)


def renamed(line: str) -> str:
    for pattern, replacement in NAMES:
        line = re.sub(pattern, replacement, line)
    return line


@pytest.mark.parametrize(
    "trace", [name for name, truth in TRUTH.items() if truth.role in ("control", "worker") or truth.end.value == S]
)
def test_other_names_change_nothing_but_names(trace: str) -> None:
    with gzip.open(TRACES / f"{trace}{SUFFIX}", "rt", encoding="utf-8") as file:
        lines = [line for line in file if '"NOTE"' not in line]
    as_it_was, under_other_names = (
        summary(list(moments(parse_trace(text)))) for text in (lines, [renamed(line) for line in lines])
    )
    if failure := as_it_was["failure"]:
        failure["role"] = {"control": "leader", "worker": "peer"}[failure["role"]]
        failure["pod"] = renamed(failure["pod"])
    assert under_other_names == as_it_was


def test_what_was_there_before_is_not_what_was_recorded() -> None:
    """The Job `block` fills the queue at first."""
    found = list(moments(read(RECORDED / "kq_job_queued.jsonl.gz")))
    assert {rank.pod.rpartition("-")[0].rpartition("-")[0] for rank in found[-1].status.ranks} == {"wait"}


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected.phases[-1] in (S, F)])
def test_a_verdict_never_comes_before_its_cause(name: str) -> None:
    entries = read(RECORDED / f"{name}.jsonl.gz")
    found = list(moments(entries))
    first = next(index for index, moment in enumerate(found) if moment.status.is_terminal)
    before = entries[: len(entries) - len(found) + first + 1]
    signs = {sign for entry in before if entry["type"] != "NOTE" for sign in signs_of(entry["object"])}
    if found[first].status.phase.value == F:
        assert signs & {"JobSet Failed", "Job FailureTarget", "AppWrapper Failed"}
    else:
        pods = {sign for sign in signs if sign.startswith("Pod Succeeded")}
        assert signs & {"JobSet Completed", "Job Complete", "AppWrapper Succeeded"} or len(pods) >= found[first].status.size
    assert {moment.status.phase for moment in found[first:]} == {found[first].status.phase}


def signs_of(obj: Any) -> set[str]:
    """What can be terminal, as "kind condition", and pods that have succeeded."""
    status, kind = obj.get("status") or {}, obj["kind"]
    signs = {f"{kind} {one['type']}" for one in status.get("conditions") or [] if one["status"] == "True"}
    if kind == "AppWrapper":
        signs.add(f"{kind} {status.get('phase')}")
    if kind == "Pod" and status.get("phase") == "Succeeded":
        signs.add(f"Pod Succeeded {obj['metadata']['uid']}")
    return signs


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from(["job_parallel_fail", "job_onfailure", "gang2_s1_fail", "aw_job_fail", "job_pod_deleted_pfp"]),
    data=st.data(),
)
def test_what_failed_never_succeeds_whatever_is_lost_or_repeated(name: str, data: st.DataObject) -> None:
    entries = read(RECORDED / f"{name}.jsonl.gz")
    times = data.draw(st.lists(st.integers(0, 2), min_size=len(entries), max_size=len(entries)))
    kept = [entry for entry, number in zip(entries, times, strict=True) for _ in range(number)]
    phases = [moment.status.phase.value for moment in moments([entries[0], *kept])]
    assert S not in phases
    ends = [phase for phase in phases if phase in (F, G)]
    assert ends == phases[len(phases) - len(ends) :]
