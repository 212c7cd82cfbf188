"""What `describe` and `why` print, computed from values."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from metaflow_extensions.kubernetes_ext.cli.describe_command import answer, description, happened, reason
from metaflow_extensions.kubernetes_ext.cli.rank_records import of_workload
from metaflow_extensions.kubernetes_ext.cli.subjects import Subject, of_metadata
from metaflow_extensions.kubernetes_ext.runtime.timeline import Timeline
from metaflow_extensions.kubernetes_ext.status.model import (
    Category,
    Failure,
    Observation,
    Phase,
    RankStatus,
    Stalled,
    Waiting,
    WorkloadStatus,
)
from tests.fakes import START

WHOSE = {"flow": "F", "run_id": "7", "step": "train", "task_id": "3", "attempt": "1", "ranks": "2"}
MANIFEST = {
    "apiVersion": "jobset.x-k8s.io/v1alpha2",
    "kind": "JobSet",
    "metadata": {
        "name": "f-train",
        "namespace": "ns",
        "annotations": {
            "metaflow.org/flow": "F", "metaflow.org/run-id": "7", "metaflow.org/step": "train", "metaflow.org/task-id": "3",
            "metaflow.org/attempt": "1", "metaflow.org/world-size": "2",
        },
    },
    "spec": {"env": [{"name": "MY_TOKEN", "value": "very secret"}]},
}  # fmt: skip
RANKS = (
    RankStatus(role="control", rank=0, pod="f-control", node="n0", phase="Running", started_at=START),
    RankStatus(role="worker", rank=1, pod="f-worker", phase="Failed", exit_code=3, reason="Error", restarts=1),
)
FAILURE = Failure(
    category=Category.USER_ERROR, summary="Worker 0 (rank 1) failed.", resolution="Correct it.", rank=1, last_lines=("oh",)
)
FAILED = WorkloadStatus(phase=Phase.FAILED, size=2, ranks=RANKS, failure=FAILURE)
NOW = START + timedelta(minutes=10)


def living(status: WorkloadStatus) -> Subject:
    manifest = {**MANIFEST, "metadata": {**MANIFEST["metadata"], "creationTimestamp": "2026-01-01T12:00:00Z"}}  # type: ignore[dict-item]
    return Subject(whose=WHOSE, status=status, manifest=manifest, observation=Observation(at=NOW))


def kept(status: WorkloadStatus, *what: str) -> dict[str, str]:
    """The metadata that a step process leaves."""
    timeline = Timeline()
    for number, each in enumerate(what):
        timeline.add(START + timedelta(seconds=20 * number), each)
    return {key: value for key, value in of_workload(status, timeline, MANIFEST).items() if value is not None}


def test_a_living_workload_is_described_with_a_line_for_each_rank() -> None:
    status = WorkloadStatus(phase=Phase.STARTING, size=2, ranks=RANKS)
    assert description(living(status), NOW) == [
        "Name:      f-train",
        "Kind:      JobSet",
        "Namespace: ns",
        "Task:      F/7/train/3 (attempt 1)",
        "Age:       10m",
        "Status:    Starting",
        "Reason:    Starting.",
        "",
        "RANK   ROLE      POD         STATUS    RESTARTS   EXIT   REASON   NODE   AGE",
        "0      control   f-control   Running   0          -      -        n0     10m",
        "1      worker    f-worker    Failed    1          3      Error    -      -",
    ]


def test_what_has_left_the_cluster_is_told_as_it_was() -> None:
    dead = of_metadata("F", "7", "train", "3", kept(FAILED, "JobSet created.", "All run.", FAILURE.summary))
    assert dead is not None
    assert (dead.status, dead.whose, dead.pathspec) == (FAILED, WHOSE, "7/train/3")
    lines = description(dead, NOW)
    assert "Status:    Failed" in lines
    assert "Reason:    Worker 0 (rank 1) failed." in lines
    assert any("not in the cluster any more" in line for line in lines)
    assert happened(dead) == ["What had happened:", "|     0s  JobSet created.", "|    20s  All run."], "the cause is told once"
    assert reason(dead.status)[0] == "Worker 0 (rank 1) failed."
    assert reason(dead.status)[2:4] == ["Its last lines:", "|   oh"]
    told = json.loads(json.dumps(answer(dead)))
    assert (told["phase"], told["failure"]["rank"], told["timeline"][1]["what"]) == ("Failed", 1, "All run.")
    assert [rank["rank"] for rank in told["ranks"]] == [rank.rank for rank in FAILED.ranks]


def test_secrets_are_not_kept() -> None:
    assert "very secret" not in json.dumps(kept(FAILED))


def test_of_a_long_story_the_beginning_and_the_end_are_told() -> None:
    dead = of_metadata("F", "7", "train", "3", kept(FAILED, *map(str, range(100))))
    assert dead is not None
    assert [line.split()[-1] for line in happened(dead)[1:]] == ["0", *map(str, range(91, 100))]


@pytest.mark.parametrize(
    ("metadata", "phase"),
    [
        pytest.param({"attempt": "0"}, None, id="not one of ours"),
        pytest.param({"kubernetes-status": "{", "kubernetes-failure": "[]"}, None, id="not readable"),
        pytest.param({"kubernetes-failure": '{"category": "gone", "summary": "s"}'}, Phase.FAILED, id="of an earlier version"),
        pytest.param({"kubernetes-status": '{"phase": "Succeeded"}', "kubernetes-timeline": "7"}, Phase.SUCCEEDED, id="little"),
        pytest.param(
            kept(replace(FAILED, failure=None, phase=Phase.SUCCEEDED)) | {"kubernetes-failure": '{"summary": "of attempt 0"}'},
            Phase.SUCCEEDED,
            id="an earlier attempt had failed",
        ),
    ],
)
def test_metadata_is_read_as_far_as_it_goes(metadata: dict[str, str], phase: Phase | None) -> None:
    found = of_metadata("F", "7", "train", "3", metadata)
    assert (found and found.status.phase) == phase
    assert found is None or description(found, NOW)[0].startswith(("Name:", "Task:"))


def test_a_workload_that_waits_says_why() -> None:
    waiting = Waiting(category=Category.QUOTA, summary="Queue q is full.", detail="2 are before it.")
    assert reason(WorkloadStatus(phase=Phase.QUEUED, size=2, waiting=waiting)) == ["Queue q is full.", "2 are before it."]


def test_a_gang_that_stands_still_is_running_and_stalled() -> None:
    status = WorkloadStatus(phase=Phase.RUNNING, size=2, stalled=Stalled(since=START, summary="No rank.", lines=("rank 1: x",)))
    lines = description(living(status), NOW)
    assert "Status:    Running, stalled" in lines
    assert "Reason:    No rank." in lines
    assert reason(status)[:2] == ["No rank.", "|   rank 1: x"]
    assert answer(living(status))["stalled"] == {"since": START.isoformat(), "summary": "No rank.", "lines": ["rank 1: x"]}
    assert "Status:    Failed" in description(living(replace(status, phase=Phase.FAILED)), NOW), "not after its end"
