"""What a user reads, whole, of workloads recorded on a real Kubernetes: golden/<trace>.txt. After a wanted change: pytest
--update-golden, and read the difference as somebody would who is woken by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from metaflow_extensions.kubernetes_ext.cli import failure_report
from metaflow_extensions.kubernetes_ext.status.diagnosis import of_waiting
from metaflow_extensions.kubernetes_ext.status.launch_limit import LaunchLimit
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.unit.status.test_traces import judged, seen

ENDED = {
    "worker_fail": "Worker 2 (rank 3, pod g-worker-0-2-",
    "control_fail": "Control (rank 0, pod g-control-0-0-",
    "pfp_names_oom": "ran out of memory (OOMKilled, exit code 137)",
    "worker_evicted": "Worker 1 (rank 2, pod g-worker-0-1-",
    "pod_deadline": "DeadlineExceeded",
    "job_deadline": "DeadlineExceeded",
    "node_lost": "was lost with its node",
    "worker_deleted": "was deleted from outside",
    "delete_background": "deleted",
}
# These wait until they are given up.
WAITED = {
    "image_pull": "Worker 1 (rank 2,",
    "unschedulable": "3 of 4 ranks have no node",
    "kueue_inadmissible": "maximum capacity",
    "bad_worker_template": 'Invalid value: "b c"',
}


def given_up(trace: str, words: str) -> WorkloadStatus:
    """As the monitor gives a workload up, at the last moment at which it waited so."""
    at, status = [
        (observation.at, one)
        for observation, one in zip(seen(trace), judged(trace), strict=True)
        if one.waiting and words in one.waiting.summary
    ][-1]
    assert status.waiting is not None
    before = at - timedelta(seconds=10)
    limit = LaunchLimit(launch=10, image_pull=10, launching_since=before, pulling_since=None).seen(status, before)
    failure = of_waiting(status.waiting, at) if status.waiting.is_hopeless else limit.exceeded(status, at)
    return replace(status, phase=Phase.FAILED, failure=failure)


@pytest.mark.parametrize("trace", [*ENDED, *WAITED])
def test_report(trace: str, golden: Callable[[str, str], None]) -> None:
    words = ENDED.get(trace) or WAITED[trace]
    lines = failure_report.lines(judged(trace)[-1] if trace in ENDED else given_up(trace, words))
    assert words in "\n".join(lines[:3]), "the cause comes first"
    assert len(lines) <= failure_report.MAX_LINES
    golden(f"{trace}.txt", "\n".join(lines) + "\n")
