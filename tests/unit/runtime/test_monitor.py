"""What the user is told of a workload from its submission to its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from metaflow_extensions.kubernetes_ext.cli import failure_report
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.errors import Forbidden
from metaflow_extensions.kubernetes_ext.runtime.logs import selected
from metaflow_extensions.kubernetes_ext.runtime.monitor import Monitor
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.status.launch_limit import LaunchLimit
from metaflow_extensions.kubernetes_ext.status.model import Category, Phase, RankStatus
from tests.fakes import FakeClock, FakeCluster, RecordingReporter
from tests.unit.runtime.workloads import BACKEND, Gang


class Scene:
    def __init__(self, which: str = "all", size: int = 2) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster()
        self.gang = Gang(self.cluster, size)
        self.reporter = RecordingReporter()
        self.running = RunningJobSet(self.cluster, BACKEND, self.gang.object, namespace="default", clock=self.clock)
        self.monitor = Monitor(self.cluster, self.running, self.reporter, clock=self.clock, which=which)
        for rank in range(size):
            self.cluster.write(self.gang.pod_name(rank), f"hello of {rank}")

    def end_logs(self) -> None:
        for rank in range(self.gang.size):
            self.cluster.end_log(self.gang.pod_name(rank))


@pytest.fixture
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene = Scene(getattr(request, "param", "all"))
    yield scene
    scene.monitor.close(0)
    scene.running.close()
    scene.cluster.close()


def succeed(scene: Scene) -> None:
    scene.clock.at(2, scene.gang.start)
    scene.clock.at(60, lambda: (scene.cluster.write(scene.gang.pod_name(1), "bye"), scene.end_logs(), scene.gang.succeed()))


def test_a_workload_that_waits_for_what_cannot_come_ends_as_failed_with_what_to_do(scene: Scene) -> None:
    scene.clock.at(2, lambda: scene.gang.set_pod(1, "Pending", reason="InvalidImageName"))
    status = scene.monitor.follow(LaunchLimit())
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert (status.failure.category, status.failure.is_retryable) == (Category.IMAGE_PULL, False)
    assert "not a valid image name" not in "".join(scene.reporter.lines), "the report comes at the end"
    assert "about InvalidImageName" in "".join(failure_report.lines(status))


def test_without_a_limit_nothing_is_given_up_and_all_is_told(scene: Scene) -> None:
    scene.clock.at(2, lambda: scene.gang.set_pod(1, "Pending", reason="InvalidImageName"))
    scene.clock.at(600, lambda: (scene.end_logs(), scene.gang.succeed()))
    assert scene.monitor.follow().phase is Phase.SUCCEEDED
    assert "not a valid image name" in "".join(scene.reporter.lines)


def test_a_success_is_told_with_all_its_logs(scene: Scene) -> None:
    succeed(scene)
    status = scene.monitor.follow()
    assert status.phase is Phase.SUCCEEDED
    assert status.failure is None
    assert scene.reporter.lines[0] == "Submitted."
    assert scene.reporter.lines[-1] == "All 2 ranks have succeeded."
    assert sorted(scene.reporter.logs) == [("control", 0, "hello of 0"), ("worker", 1, "bye"), ("worker", 1, "hello of 1")]


def test_of_a_success_all_logs_are_shown_also_of_a_pod_whose_start_was_not_heard_of(scene: Scene) -> None:
    """The word that all has succeeded may come first."""
    scene.clock.at(2, lambda: (scene.gang.start(0), scene.gang.set_pod(1, "Pending")))
    scene.clock.at(60, lambda: (scene.end_logs(), scene.gang.finish("Completed")))
    assert scene.monitor.follow().phase is Phase.SUCCEEDED
    assert sorted(scene.reporter.logs) == [("control", 0, "hello of 0"), ("worker", 1, "hello of 1")]


@pytest.mark.parametrize(
    ("scene", "ranks"), [("control", {0}), ("none", set()), ("1", {1}), ("0,1", {0, 1})], indirect=["scene"]
)
def test_only_selected_ranks_are_shown(scene: Scene, ranks: set[int]) -> None:
    succeed(scene)
    scene.monitor.follow()
    assert {rank for _, rank, _ in scene.reporter.logs} == ranks


@pytest.mark.parametrize("scene", ["all", "control"], indirect=True)
def test_a_failure_carries_the_culprits_last_lines(scene: Scene) -> None:
    def fail() -> None:
        scene.cluster.write(scene.gang.pod_name(1), "Traceback: out of luck")
        scene.gang.set_pod(1, "Failed", exit_code=3)
        scene.end_logs()

    scene.clock.at(2, scene.gang.start)
    scene.clock.at(60, fail)
    scene.clock.at(62, lambda: scene.gang.finish("Failed"))
    status = scene.monitor.follow()
    assert status.phase is Phase.FAILED
    assert status.failure is not None
    assert (status.failure.rank, status.failure.exit_code) == (1, 3)
    assert status.failure.last_lines[-1] == "Traceback: out of luck"
    assert "exit code 3" in status.failure.summary


def test_a_failure_stands_in_the_timeline_and_is_left_to_the_report(scene: Scene) -> None:
    scene.clock.at(2, scene.gang.start)
    scene.clock.at(60, lambda: (scene.end_logs(), scene.gang.set_pod(1, "Failed", exit_code=3)))
    scene.clock.at(62, lambda: scene.gang.finish("Failed"))
    failure = scene.monitor.follow().failure
    assert failure is not None
    assert scene.monitor.timeline.as_json()[-1]["what"] == failure.summary
    assert failure.summary not in scene.reporter.lines


@pytest.mark.parametrize("scene", ["none"], indirect=True)
def test_the_last_lines_are_read_before_the_pod_is_gone(scene: Scene) -> None:
    """The controllers delete the culprit's pod seconds after its end."""
    scene.cluster.write(scene.gang.pod_name(1), "the cause")
    scene.clock.at(2, scene.gang.start)
    scene.clock.at(60, lambda: (scene.end_logs(), scene.gang.set_pod(1, "Failed", exit_code=3)))
    scene.clock.at(63, lambda: scene.cluster.remove(PODS, scene.gang.pod_name(1)))
    scene.clock.at(64, lambda: scene.gang.finish("Failed"))
    status = scene.monitor.follow()
    assert status.failure is not None
    assert status.failure.last_lines == ("hello of 1", "the cause")


def test_missing_permission_for_logs_is_told_once(scene: Scene) -> None:
    scene.cluster.fail("get", "pods/log", *[Forbidden("Not allowed to get pods/log", status=403)] * 10)
    succeed(scene)
    assert scene.monitor.follow().phase is Phase.SUCCEEDED
    assert len([line for line in scene.reporter.lines if "pods/log" in line]) == 1


def test_the_timeline_has_what_was_told_and_when(scene: Scene) -> None:
    succeed(scene)
    scene.monitor.follow()
    entries = scene.monitor.timeline.as_json()
    assert entries[0]["what"] == "Submitted."
    assert entries[-1] == {"at": "2026-01-01T12:01:00.000+00:00", "what": "All 2 ranks have succeeded."}


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("all", True),
        ("none", False),
        ("control", False),
        ("3", True),
        ("1, 3", True),
        ((3, 4), True),
        ([0], False),
        ("", False),
    ],
)
def test_ranks_are_selected_by_word_or_number(which: str, expected: bool) -> None:
    assert selected(which, RankStatus(role="worker", rank=3)) is expected
