"""When a workload that does not start is given up: never in a queue, never while it makes the progress it needs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from metaflow_extensions.kubernetes_ext.status.launch_limit import LaunchLimit
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, RankStatus, Waiting, WorkloadStatus

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
PULLING = Waiting(category=Category.IMAGE_PULL, summary="Worker 0 (rank 1, pod w) can't get its image nope:1.")
NO_NODE = Waiting(category=Category.UNSCHEDULABLE, summary="2 of 2 ranks have no node.", detail="Ask for less.")
RANKS = (
    RankStatus(role="control", rank=0, pod="c", phase="Running"),
    RankStatus(role="worker", rank=1, pod="w", phase="Pending", reason="ImagePullBackOff", node="n1"),
)


def status(phase: Phase, waiting: Waiting | None = None) -> WorkloadStatus:
    return WorkloadStatus(phase=phase, size=2, ranks=RANKS, waiting=waiting)


def after(limit: LaunchLimit, *story: tuple[float, WorkloadStatus]) -> Failure | None:
    """The failure at the last of these moments, in seconds."""
    found = None
    for seconds, seen in story:
        at = START + timedelta(seconds=seconds)
        limit = limit.seen(seen, at)
        found = limit.exceeded(seen, at)
    return found


def test_a_workload_that_never_starts_is_given_up_with_what_it_waits_for() -> None:
    failure = after(LaunchLimit(launch=60), (0, status(Phase.PENDING)), (60, status(Phase.STARTING, NO_NODE)))
    assert failure is not None
    assert (failure.category, failure.rank, failure.pod) == (Category.LAUNCH_TIMEOUT, 1, "w")
    assert failure.summary == "Not all ranks ran within 60 s (launch_timeout): 2 of 2 ranks have no node."
    assert failure.resolution == "Ask for less."
    assert failure.is_retryable


def test_an_image_that_can_not_be_had_is_given_up() -> None:
    pulling = status(Phase.STARTING, PULLING)
    failure = after(LaunchLimit(launch=900, image_pull=60), (0, status(Phase.STARTING)), (30, pulling), (90, pulling))
    assert failure is not None
    assert (failure.category, failure.rank, failure.reason) == (Category.IMAGE_PULL, 1, "ImagePullBackOff")
    assert failure.summary == "Worker 0 (rank 1, pod w) can't get its image nope:1, for 60 s (image_pull_timeout)."


@pytest.mark.parametrize(
    "story",
    [
        pytest.param([(0, status(Phase.STARTING)), (59, status(Phase.STARTING))], id="in time"),
        pytest.param([(0, status(Phase.QUEUED)), (36000, status(Phase.QUEUED))], id="in a queue, for hours"),
        pytest.param(
            [(0, status(Phase.STARTING)), (50, status(Phase.QUEUED)), (100, status(Phase.STARTING))],
            id="admitted again: the clock starts anew",
        ),
        pytest.param([(0, status(Phase.STARTING)), (30, status(Phase.RUNNING)), (999, status(Phase.RUNNING))], id="runs"),
        pytest.param(
            [(0, status(Phase.STARTING)), (30, status(Phase.RUNNING)), (999, status(Phase.STARTING))],
            id="a rank was lost after hours",
        ),
    ],
)
def test_what_is_not_given_up(story: list[tuple[float, WorkloadStatus]]) -> None:
    assert after(LaunchLimit(launch=60, image_pull=60), *story) is None


def test_zero_is_no_limit() -> None:
    story = [(0.0, status(Phase.STARTING, PULLING)), (1e6, status(Phase.STARTING, PULLING))]
    assert after(LaunchLimit(launch=0, image_pull=0), *story) is None


def test_an_image_that_comes_after_all_stops_the_clock() -> None:
    pulling, starting = status(Phase.STARTING, PULLING), status(Phase.STARTING)
    assert after(LaunchLimit(image_pull=60), (0, pulling), (50, starting), (55, pulling), (110, pulling)) is None
