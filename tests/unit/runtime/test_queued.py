"""A gang in a queue of Kueue, for an hour: a few lines, a few requests, no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.protocol import EVENTS, JOBS, PODS, Resource
from metaflow_extensions.kubernetes_ext.errors import Forbidden
from metaflow_extensions.kubernetes_ext.runtime.monitor import Monitor
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.status.launch_limit import LaunchLimit
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.fakes import FakeClock, FakeCluster, RecordingReporter
from tests.unit.runtime.workloads import BACKEND, JOBSETS, NAME, Gang

WORKLOADS = Resource("kueue.x-k8s.io", "v1beta1", "workloads", "Workload")
MINUTE = 60
MESSAGE = "couldn't assign flavors to pod set worker: insufficient unused quota for cpu in flavor default, {} more needed"


class Queue:
    """Kueue, as far as its words go."""

    def __init__(self, cluster: FakeCluster, gang: Gang) -> None:
        self.cluster = cluster
        self.uid = gang.object["metadata"]["uid"]
        self.suspend(True)
        self.says("Pending", MESSAGE.format(1))

    def suspend(self, suspended: bool) -> None:
        metadata = {"name": NAME, "labels": {labels.KUEUE_QUEUE: "team"}}
        condition = {"type": "Suspended", "status": "True" if suspended else "False"}
        body = {"metadata": metadata, "spec": {"suspend": suspended}, "status": {"conditions": [condition]}}
        self.cluster.patch(JOBSETS, "default", NAME, body)

    def says(self, reason: str, message: str, **status: Any) -> None:
        condition = {"type": "QuotaReserved", "status": "False", "reason": reason, "message": message}
        metadata = {"name": "w", "labels": {labels.KUEUE_JOB_UID: self.uid}}
        self.cluster.update(
            WORKLOADS,
            {
                "metadata": metadata,
                "spec": {"queueName": "team", "active": True},
                "status": {"conditions": [condition], **status},
            },
        )


def test_an_hour_in_a_queue_costs_few_lines_and_requests_and_is_no_reason_to_give_up() -> None:
    clock, cluster, reporter = FakeClock(), FakeCluster(served=(JOBS, PODS, JOBSETS, WORKLOADS)), RecordingReporter()
    gang = Gang(cluster, 2)
    queue = Queue(cluster, gang)
    cluster.requests.clear()
    for minute in range(5, 60, 5):  # other gangs come and go
        clock.at(minute * MINUTE, lambda minute=minute: queue.says("Pending", MESSAGE.format(2 + minute % 7)))
    clock.at(20 * MINUTE, lambda: queue.says("Inadmissible", "ClusterQueue team is inactive"))
    clock.at(60 * MINUTE, lambda: queue.suspend(False))
    clock.at(60 * MINUTE + 5, gang.start)
    clock.at(61 * MINUTE, gang.succeed)
    phases, limit = [Phase.PENDING], LaunchLimit(launch=120, image_pull=60)
    with RunningJobSet(cluster, BACKEND, gang.object, namespace="default", clock=clock, tell=reporter.line) as running:
        monitor = Monitor(cluster, running, reporter, clock=clock, which="none")
        status = running.status
        while not status.is_terminal:
            monitor.show(status)
            limit = limit.seen(status, running.observation.at)
            assert limit.exceeded(status, running.observation.at) is None
            assert not (status.waiting and status.waiting.is_hopeless)
            phases += [] if phases[-1] is status.phase else [status.phase]
            status = running.step(10)
        monitor.show(status)
        monitor.close()
    assert [*phases, status.phase] == [Phase.PENDING, Phase.QUEUED, Phase.STARTING, Phase.RUNNING, Phase.SUCCEEDED]
    assert "Waits in queue team: " + MESSAGE.format(1) + "." in reporter.lines
    assert len(reporter.lines) < 10, reporter.lines
    assert sum(cluster.requests.values()) < 60, cluster.requests


def step_until(running: RunningJobSet, phase: Phase) -> WorkloadStatus:
    for _ in range(100):
        if (status := running.step(0.1)).phase is phase:
            return status
    pytest.fail(f"it did not become {phase}")


def test_why_it_was_stopped_is_told_at_once() -> None:
    clock, cluster, reporter = FakeClock(), FakeCluster(served=(JOBS, PODS, JOBSETS, WORKLOADS)), RecordingReporter()
    gang = Gang(cluster, 2)
    queue = Queue(cluster, gang)
    with RunningJobSet(cluster, BACKEND, gang.object, namespace="default", clock=clock, tell=reporter.line) as running:
        step_until(running, Phase.QUEUED)
        queue.suspend(False)
        gang.start()
        step_until(running, Phase.RUNNING)
        message = "The ClusterQueue is stopped"
        still = [{"type": kind, "status": "True"} for kind in ("QuotaReserved", "Admitted")]
        evicted = {"type": "Evicted", "status": "True", "reason": "ClusterQueueStopped", "message": message}
        cluster.patch(WORKLOADS, "default", "w", {"status": {"conditions": [*still, evicted]}})
        queue.suspend(True)
        waiting = step_until(running, Phase.QUEUED).waiting
    assert waiting is not None
    assert waiting.summary == "Was stopped together with its ClusterQueue, and waits in queue team."


def test_of_a_gang_that_kueue_has_given_up_its_words_are_read_too() -> None:
    clock, cluster = FakeClock(), FakeCluster(served=(JOBS, PODS, JOBSETS, WORKLOADS))
    gang = Gang(cluster, 2)
    queue = Queue(cluster, gang)
    queue.says("Pending", "no")
    workload = cluster.get(WORKLOADS, "default", "w")
    evicted = {"type": "Evicted", "status": "True", "reason": "DeactivatedDueToAdmissionCheck"}
    cluster.patch(WORKLOADS, "default", "w", {"spec": {"active": False}, "status": {"conditions": [evicted]}})
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"uid": workload["metadata"]["uid"]},
        "reason": "AdmissionCheckRejected",
        "message": "Deactivating workload because AdmissionCheck for prov was Rejected: not on Sundays",
    }
    cluster.create(EVENTS, "default", event)
    with RunningJobSet(cluster, BACKEND, gang.object, namespace="default", clock=clock) as running:
        step_until(running, Phase.QUEUED)
        waiting = running.look_closer().waiting
    assert waiting is not None
    assert waiting.summary == "Was given up by queue team: an admission check has rejected it (prov: not on Sundays)."


VISIBILITY = Resource("visibility.kueue.x-k8s.io", "v1beta2", "localqueues/pendingworkloads", "PendingWorkloadsSummary")
PENDING = Resource("visibility.kueue.x-k8s.io", "v1beta2", "localqueues/team/pendingworkloads", "PendingWorkloadsSummary")


@pytest.mark.parametrize(
    ("served", "is_permitted", "where"),
    [
        pytest.param(True, True, " behind 2 others", id="it is served"),
        pytest.param(False, True, "", id="it is not served"),
        pytest.param(True, False, "", id="the user may not read it"),
    ],
)
def test_the_place_in_the_queue_is_told_where_it_can_be_known(served: bool, is_permitted: bool, where: str) -> None:
    kinds = (JOBS, PODS, JOBSETS, WORKLOADS, *((VISIBILITY, PENDING) if served else ()))
    clock, cluster, reporter = FakeClock(), FakeCluster(served=kinds), RecordingReporter()
    gang = Gang(cluster, 2)
    Queue(cluster, gang)
    if served:
        for name, position in (("a", 0), ("b", 1), ("w", 2)):
            cluster.create(PENDING, "default", {"metadata": {"name": name}, "positionInClusterQueue": position})
    if not is_permitted:
        cluster.fail("list", PENDING.plural, Forbidden("not allowed", status=403))
    with RunningJobSet(cluster, BACKEND, gang.object, namespace="default", clock=clock, tell=reporter.line) as running:
        for _ in range(4):
            status = running.step(10)
    assert status.waiting is not None
    assert status.waiting.summary == f"Waits in queue team{where}: {MESSAGE.format(1)}."
    assert reporter.lines == []
