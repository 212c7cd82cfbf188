"""A queue that plays what a real Kueue was recorded to do is seen by its user as the real one was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from metaflow_devcluster import kueue
from metaflow_extensions.kubernetes_ext.replay import moments, read
from metaflow_extensions.kubernetes_ext.status.trace import Entry, parse_trace
from tests.kueue_scripts import script_of
from tests.unit.devcluster.world import JOBS, JOBSETS, World, gang, replicated_job
from tests.unit.status.test_traces import TRACES

Object = dict[str, Any]
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


def queues(world: World, script: str | None = None, name: str = "lq") -> None:
    """Make it a cluster with queues, and this queue."""
    if not kueue.is_played(world.store):
        from metaflow_devcluster.api.definitions import Definitions
        from metaflow_devcluster.api.tables import Tables

        served = Definitions(world.store, world.cluster.admission.schemas, Tables())  # type: ignore[attr-defined]
        for definition in kueue.definitions():
            served.serve(world.cluster.create(DEFINITIONS, definition))
    annotations = {} if script is None else {kueue.SCRIPT: script}
    world.create(kueue.LOCAL_QUEUES, {"metadata": {"name": name, "namespace": "default", "annotations": annotations}})


def queued(obj: Object, queue: str = "lq") -> Object:
    return {**obj, "metadata": {**obj["metadata"], "labels": {kueue.QUEUE_NAME: queue}}}


def job() -> Object:
    spec = replicated_job("x")["template"]["spec"]
    meta = {"name": "g", "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def play(world: World, seconds: float) -> None:
    """Time passes; pods that are new run, those on their way out go."""
    end = world.seconds + seconds
    while world.seconds < end:
        world.advance(0.25, 0.05)
        for pod in world.pods():
            if pod["metadata"].get("deletionTimestamp"):
                world.finish_deletion(pod)
            elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                world.run(pod)


def seen(world: World) -> list[Entry]:
    """All that was written, as a recording."""
    lines = [
        json.dumps({"t": number / 1000, "type": change.type, "object": change.object})
        for number, change in enumerate(world.history.pending())
    ]
    return parse_trace(lines)


def waits(entries: Sequence[Entry], workload: str = "") -> list[str]:
    """The phases but for those between creation and running, which the pods make, and what was waited for."""
    found: list[str] = []
    for moment in moments(entries, workload):
        phase, waiting = str(moment.status.phase), moment.status.waiting
        if phase == "Queued" and waiting is not None:
            phase += f": {waiting.summary}"
        if moment.status.is_terminal:
            break
        if phase.startswith("Queued: Waits in queue lq.") or phase.endswith(", is being started."):
            continue  # before Kueue has said anything; between two of its writes
        if phase not in ("Pending", "Starting") and found[-1:] != [phase]:
            found.append(phase)
    return found


PLAYED = [
    pytest.param("kueue_queued.s2", "JobSet", "g", id="queued until there is quota"),
    pytest.param("kueue_inadmissible.s2", "JobSet", "g", id="can never start"),
    pytest.param("kueue_deactivated.s2", "JobSet", "g", id="deactivated and activated again"),
    pytest.param("recorded/kq_preempted", "JobSet", "low", id="preempted"),
    pytest.param("recorded/kq_drained", "JobSet", "g", id="its ClusterQueue is drained and comes back"),
    pytest.param("recorded/kq_stopped", "JobSet", "stop", id="deactivated for good"),
    pytest.param("recorded/kq_check_retried", "JobSet", "g", id="an admission check wants another try"),
    pytest.param("recorded/kq_check_rejected", "JobSet", "g", id="an admission check rejects it"),
]


@pytest.mark.parametrize(("trace", "kind", "name"), PLAYED)
def test_what_was_recorded_is_played(trace: str, kind: str, name: str) -> None:
    recorded = read(TRACES / f"{trace}.jsonl.gz")
    script = script_of(recorded, kind, name)
    world = World()
    queues(world, script)
    world.create(JOBSETS, queued(gang(name)))
    play(world, sum(step["after"] for step in json.loads(script)) + 2)
    assert waits(seen(world), name) == waits(recorded, name)


def test_a_queue_without_a_script_admits_at_once_and_the_workload_ends_with_its_job() -> None:
    world = World()
    queues(world)
    created = world.create(JOBS, queued(job()))
    assert created["spec"]["suspend"] is True  # by the webhook, in the reply
    play(world, 1)
    [pod] = world.pods()
    assert [entry[:2] for entry in world.conditions(workload(world))] == [("QuotaReserved", "True"), ("Admitted", "True")]
    world.end(pod)
    play(world, 2)
    assert world.conditions(workload(world))[-1] == ("Finished", "True", "Succeeded")


def workload(world: World) -> Object:
    [found] = world.store.list(kueue.WORKLOADS)
    return found


def test_a_queue_that_does_not_exist_is_waited_for() -> None:
    world = World()
    queues(world)
    world.create(JOBSETS, queued(gang(), "later"))
    play(world, 1)
    assert world.message(workload(world), "QuotaReserved") == "LocalQueue later doesn't exist"
    queues(world, name="later")
    play(world, 1)
    assert len(world.pods()) == 4


def test_without_queues_the_label_means_nothing() -> None:
    world = World()
    world.create(JOBSETS, queued(gang()))
    assert len(world.pods()) == 4


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="no JSON"),
        pytest.param('{"after": 1}', id="no list"),
        pytest.param('[{"afterwards": 1}]', id="an unknown word"),
        pytest.param('[{"conditions": {"Admitted": "True"}}]', id="a condition without its words"),
        pytest.param('[{"after": -1}]', id="the past"),
    ],
)
def test_what_is_no_script_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a list of steps"):
        kueue.parse_script(text)
