"""What a user hears, and what not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.jobset import jobset_status
from metaflow_extensions.kubernetes_ext.status.model import Category, Phase, Stalled, Waiting, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.transitions import transitions
from tests.builders_objects import condition, make_gang_pods, make_jobset, make_pod, observe
from tests.fakes import START


def status(*running: int, size: int = 4, **fields: Any) -> WorkloadStatus:
    """Of a gang in which these ranks run, the others are pending."""
    groups = {"control": 1, "worker": size - 1}
    pods = [
        make_pod(role, index, "Running" if rank in running else "Pending")
        for rank, (role, index) in enumerate([("control", 0), *(("worker", index) for index in range(size - 1))])
    ]
    return replace(jobset_status(observe(make_jobset(groups=groups), pods)), **fields)


def lines(*statuses: WorkloadStatus | None) -> list[str]:
    told: list[str] = []
    for previous, current in zip([None, *statuses], statuses, strict=False):
        assert current is not None
        told += [str(change) for change in transitions(previous, current)]
    return told


PENDING = jobset_status(observe(make_jobset(status={})))
QUEUED = jobset_status(observe(make_jobset(suspend=True)))
DONE = jobset_status(observe(make_jobset(condition("Completed")), make_gang_pods("Succeeded", exit_code=0)))
FAILED = jobset_status(observe(make_jobset(condition("Failed")), [make_pod("worker", 1, "Failed", exit_code=3)]))


@pytest.mark.parametrize("one", [PENDING, QUEUED, status(0), status(0, 1, 2, 3), DONE, FAILED])
def test_nothing_new_is_nothing_to_tell(one: WorkloadStatus) -> None:
    assert transitions(one, one) == []


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param([PENDING], ["Submitted."], id="submitted"),
        pytest.param(
            [PENDING, QUEUED],
            ["Submitted.", "Queued.", "Is suspended (spec.suspend is true), and no queue is named that could start it."],
            id="queued",
        ),
        pytest.param(
            [PENDING, status(), status(0), status(0, 2), status(0, 1, 2, 3), DONE],
            [
                "Submitted.",
                "Starting: 0 of 4 ranks run.",
                "1 of 4 ranks run.",
                "2 of 4 ranks run.",
                "All 4 ranks run.",
                "All 4 ranks have succeeded.",
            ],
            id="a healthy run",
        ),
        pytest.param(
            [status(0, 1, 2, 3), FAILED],
            [
                "All 4 ranks run.",
                "Worker 1 (rank 2, pod js-1-worker-0-1-abcde on node-1) failed with exit code 3.",
            ],
            id="a failure",
        ),
        pytest.param(
            [status(0, 1), status(0, 1, 2, 3), status(0, 1)],
            ["Starting: 2 of 4 ranks run.", "All 4 ranks run.", "Starting: 2 of 4 ranks run."],
            id="ranks lost",
        ),
        pytest.param([status(size=1), status(0, size=1)], ["Starting.", "The task runs."], id="a gang of one"),
    ],
)
def test_what_is_told(statuses: Sequence[WorkloadStatus], expected: list[str]) -> None:
    assert lines(*statuses) == expected


def test_a_large_gang_tells_quarters() -> None:
    told = lines(*(status(*range(running), size=40) for running in range(41)))
    assert told == [
        "Starting: 0 of 40 ranks run.",
        "10 of 40 ranks run.",
        "20 of 40 ranks run.",
        "30 of 40 ranks run.",
        "All 40 ranks run.",
    ]


def waits(summary: str, category: Category = Category.UNSCHEDULABLE, is_hopeless: bool = False) -> WorkloadStatus:
    return status(0, waiting=Waiting(category=category, summary=summary, is_hopeless=is_hopeless))


@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        pytest.param(status(0), waits("No node."), ["No node."], id="it begins to wait"),
        pytest.param(waits("0/2 nodes."), waits("0/3 nodes."), [], id="only numbers changed"),
        pytest.param(waits("No node."), waits("No image.", Category.IMAGE_PULL), ["No image."], id="for something else"),
        pytest.param(waits("No image."), waits("No image.", is_hopeless=True), [], id="the same words"),
        pytest.param(waits("No node."), status(0), [], id="no longer"),
        pytest.param(None, waits("No node."), ["Starting: 1 of 4 ranks run.", "No node."], id="from the beginning"),
    ],
)
def test_waiting(previous: WorkloadStatus | None, current: WorkloadStatus, expected: list[str]) -> None:
    assert [str(change) for change in transitions(previous, current)] == expected


def test_a_restart_names_its_cause() -> None:
    failed = jobset_status(observe(make_jobset(), [make_pod("worker", 1, "Failed", exit_code=3), make_pod("control")]))
    again = jobset_status(observe(make_jobset(restarts=1)), failed)
    assert [change.kind for change in transitions(failed, again)] == ["restart"]
    assert str(transitions(failed, again)[0]) == (
        "Starts again (restart 1), after the end of worker 1 (rank 2, pod js-1-worker-0-1-abcde on node-1): Error, exit code 3."
    )


def test_a_replaced_pod() -> None:
    old = jobset_status(observe(make_jobset(), [make_pod("worker", 1, "Failed", exit_code=3, suffix="first")]))
    new = jobset_status(observe(make_jobset(), [make_pod("worker", 1, "Pending", suffix="again", node="")]))
    assert [str(change) for change in transitions(old, new) if change.kind == "replaced"] == [
        "Worker 1 (rank 2, pod js-1-worker-0-1-again) takes the place of pod js-1-worker-0-1-first: Error, exit code 3."
    ]


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_words(phase: Phase) -> None:
    assert lines(WorkloadStatus(phase=phase, size=4))[0].endswith(".")


STALLED = status(0, 1, 2, 3, stalled=Stalled(since=START, summary="No rank has made progress.", lines=("rank 2: x",)))


def test_standing_still_is_told_once_with_where_and_its_end() -> None:
    runs = status(0, 1, 2, 3)
    assert lines(runs, STALLED, STALLED, runs, DONE)[1:] == [
        "No rank has made progress.",
        "Ranks make progress again.",
        "All 4 ranks have succeeded.",
    ]
    (change,) = transitions(runs, STALLED)
    assert change.details[0] == "|   rank 2: x"
    assert "Nothing is stopped" in change.details[-1]
    assert [change.kind for change in transitions(STALLED, DONE)] == ["phase"]
