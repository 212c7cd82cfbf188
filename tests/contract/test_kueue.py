"""Waiting in queues of a real Kueue: what the user hears of it, and what the verdict is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.runtime.submit import submit
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.placement import Topology
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase, WorkloadStatus
from tests.contract.places import ON_REAL, Place
from tests.contract.queues import QUEUE, queue, reject
from tests.contract.stories import Play, Story, When, tell
from tests.contract.test_lifecycles import End, check, delete_workload

pytestmark = ON_REAL
GONE = End(phase=Phase.GONE, category="gone", reason="Gone")
GANG = Story(size=2, queue=QUEUE)


def says(text: str, *, is_hopeless: bool = False) -> Callable[[WorkloadStatus], bool]:
    return lambda status: (
        status.waiting is not None and text in status.waiting.summary and status.waiting.is_hopeless is is_hopeless
    )


def test_an_admission_check_that_nobody_answers_and_then_rejects(place: Place) -> None:
    def answer(play: Play) -> None:
        reject(place.admin, place.namespace, "not on Sundays")

    with queue(place.admin, place.namespace, "1", is_checked=True):
        told = tell(
            place,
            GANG,
            When(says(f"Has its quota in queue {QUEUE}, and waits for admission check {place.namespace}"), answer),
            When(says("not on Sundays", is_hopeless=True), delete_workload),
        )
    check(told, GONE)


def test_a_topology_in_which_there_is_no_room(place: Place) -> None:
    """The quota would do; the node has not so many cores."""
    far = Topology(level="kubernetes.io/hostname", is_required=True)
    story = replace(GANG, resources=Resources(cpu="50", memory="32Mi"), topology=far)
    with queue(place.admin, place.namespace, "1000", topology=far.level):
        told = tell(place, story, When(says("topology"), delete_workload))
    check(told, GONE)
    assert any(f"Waits in queue {QUEUE}" in line and "fit" in line for line in told.reporter.lines), told


@pytest.mark.long
def test_pods_that_are_not_ready_in_time_are_taken_back_and_at_last_given_up(place: Place) -> None:
    """Kueue's own limit of the test cluster (waitForPodsReady in tests/cluster/lib/controllers.sh)."""
    story = replace(GANG, image=place.missing_image)
    with queue(place.admin, place.namespace, "1"):
        told = tell(
            place,
            story,
            When(says("Was taken back since not all its pods were ready in time"), lambda play: None),
            When(says("not all its pods were ready in time, too often", is_hopeless=True), delete_workload),
            seconds=240,
        )
    check(told, GONE)


@pytest.mark.parametrize("rounds", [2, pytest.param(20, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("order", [("one", "other"), ("other", "one")], ids=" then ".join)
def test_two_gangs_where_there_is_room_for_one_both_finish(place: Place, order: tuple[str, str], rounds: int) -> None:
    phases: list[Phase] = []

    def run(name: str, is_submitted: threading.Event) -> None:
        spec = replace(story.spec(place), name=name, gang="kueue", labels={labels.KUEUE_QUEUE: QUEUE})
        backend = story.backend()
        created = submit(place.client, backend, backend.build(spec), namespace=place.namespace, clock=RealClock())
        is_submitted.set()
        with RunningJobSet(place.client, backend, created, namespace=place.namespace) as running:
            phases.append(running.wait().phase)

    story = Story(size=4)
    with queue(place.admin, place.namespace, "0.2"):
        for number in range(rounds):
            threads = []
            for name in order:
                is_submitted = threading.Event()
                threads.append(threading.Thread(target=run, args=(f"{name}-{number}", is_submitted)))
                threads[-1].start()
                assert is_submitted.wait(60)
            for thread in threads:
                thread.join(120)
                assert not thread.is_alive(), f"round {number}: neither gang gets on"
    assert phases == [Phase.SUCCEEDED] * 2 * rounds
