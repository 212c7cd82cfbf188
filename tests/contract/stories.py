"""A workload of plain shell commands: submitted, watched and followed as the product does it, while a test may interfere."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from metaflow_extensions.kubernetes_ext.backends.appwrapper import AppWrapperBackend
from metaflow_extensions.kubernetes_ext.backends.base import Backend
from metaflow_extensions.kubernetes_ext.backends.job import JobBackend
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.monitor import Monitor
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.runtime.submit import submit
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.environment import literals
from metaflow_extensions.kubernetes_ext.spec.fault_tolerance import FaultTolerance
from metaflow_extensions.kubernetes_ext.spec.launch import CONTROL, WORKER, ContainerSpec, Group, LaunchSpec
from metaflow_extensions.kubernetes_ext.spec.placement import Placement, Topology
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase, RankStatus, WorkloadStatus
from tests.contract.places import Place
from tests.contract.waiting import PATIENCE
from tests.fakes import RecordingReporter

NAME = "story"
TASK = "task"  # the group of a plain Job
SECONDS = 1.5 * PATIENCE  # for a whole story
SMALL = Resources(cpu="50m", memory="32Mi")
QUICK = FaultTolerance(failure_grace=1, retry_pause=1)  # an AppWrapper else looks at a failure for a minute


@dataclass(frozen=True, kw_only=True)
class Story:
    """What runs. `ranks` replaces the command of single ranks; size 0 is a plain Job, else a gang in a JobSet; with
    `fault_tolerance` in an AppWrapper.

    The shell variable RANK is the rank, HOST_0, HOST_1, ... are the names of the ranks' pods in the network, PORT is one to use.
    """

    size: int
    command: str = "true"
    ranks: dict[int, str] = field(default_factory=dict)
    resources: Resources = SMALL
    node_selector: dict[str, str] = field(default_factory=dict)
    image: str = ""
    deadline_seconds: int | None = None
    grace_seconds: int = 1
    is_suspended: bool = False
    queue: str = ""  # of Kueue
    topology: Topology | None = None
    fault_tolerance: FaultTolerance | None = None

    def backend(self) -> Backend:
        found: Backend = JobSetBackend() if self.size else JobBackend()
        return AppWrapperBackend(wrapped=found) if self.fault_tolerance else found

    def spec(self, place: Place) -> LaunchSpec:
        groups = [self._group(CONTROL if self.size else TASK, 1, place)]
        if self.size > 1:
            groups.append(self._group(WORKER, self.size - 1, place))
        return LaunchSpec(
            name=NAME,
            namespace=place.namespace,
            groups=tuple(groups),
            deadline_seconds=self.deadline_seconds,
            grace_seconds=self.grace_seconds,
            fault_tolerance=self.fault_tolerance,
        )

    def _group(self, name: str, replicas: int, place: Place) -> Group:
        first = 1 if name == WORKER else 0
        cases = [f"{rank}) {command} ;;" for rank, command in self.ranks.items()]
        script = "\n".join(
            [f"RANK=$((${{JOB_COMPLETION_INDEX:-0}} + {first}))", "case $RANK in", *cases, f"*) {self.command} ;;", "esac"]
        )
        container = ContainerSpec(
            name="main",
            image=self.image or place.image,
            image_pull_policy="IfNotPresent",
            command=("sh", "-c", script),
            env=literals({f"HOST_{rank}": host(rank) for rank in range(max(1, self.size))} | {"PORT": port(place.namespace)}),
            resources=self.resources,
        )
        return Group(
            name=name,
            replicas=replicas,
            container=container,
            placement=Placement(node_selector=self.node_selector, topology=self.topology),
        )


def host(rank: int) -> str:
    """The name of a rank's pod in the network, as JobSet makes it."""
    return f"{NAME}-control-0-0.{NAME}" if rank == 0 else f"{NAME}-worker-0-{rank - 1}.{NAME}"


def port(namespace: str) -> str:
    """Another one in each namespace: pods of several development clusters are processes of one machine."""
    return str(20000 + zlib.crc32(namespace.encode()) % 10000)


@dataclass
class Told:
    """How it went: what the product saw and said."""

    place: Place
    running: RunningJobSet
    reporter: RecordingReporter
    status: WorkloadStatus
    phases: list[Phase]
    waits: list[str]  # categories of waiting, each once, in order

    def rank(self, rank: int) -> RankStatus:
        return self.status.ranks[rank]

    def __str__(self) -> str:
        lines = [f"phases {[str(phase) for phase in self.phases]}, waits {self.waits}", repr(self.status.failure)]
        return "\n".join([*lines, *map(repr, self.status.ranks), *self.reporter.lines, *map(repr, self.reporter.logs)])


Act = Callable[["Play"], None]


@dataclass
class Play:
    """A story while it runs; actions get it."""

    place: Place
    backend: Backend
    running: RunningJobSet
    status: WorkloadStatus

    def pod(self, rank: int) -> str:
        return self.status.ranks[rank].pod

    def patch(self, body: dict[str, Any]) -> None:
        resource = resource_of(self.backend)
        self.place.client.patch(resource, self.place.namespace, NAME, body)

    def delete(self) -> None:
        """As somebody else would."""
        self.place.admin.delete(resource_of(self.backend), self.place.namespace, NAME)


@dataclass(frozen=True)
class When:
    """Do `act` once, as soon as `ready`; steps of a play happen in their order."""

    ready: Callable[[WorkloadStatus], bool]
    act: Act


def in_phase(phase: Phase) -> Callable[[WorkloadStatus], bool]:
    return lambda status: status.phase is phase


def waits_for(category: str) -> Callable[[WorkloadStatus], bool]:
    return lambda status: status.waiting is not None and str(status.waiting.category) == category


def kill(play: Play) -> None:
    play.running.kill()


def tell(place: Place, story: Story, *steps: When, seconds: float = SECONDS) -> Told:
    """Submit the story and follow it to its end, which must come within `seconds`."""
    backend, clock, reporter = story.backend(), RealClock(), RecordingReporter()
    manifest = backend.build(story.spec(place))
    if story.is_suspended:
        manifest["spec"]["suspend"] = True
    if story.queue:
        manifest["metadata"].setdefault("labels", {})[labels.KUEUE_QUEUE] = story.queue
    created = submit(place.client, backend, manifest, namespace=place.namespace, clock=clock)
    todo, phases, waits = list(steps), [], []
    give_up_at = time.monotonic() + seconds
    with RunningJobSet(place.client, backend, created, namespace=place.namespace, clock=clock, tell=reporter.line) as running:
        monitor = Monitor(place.client, running, reporter, clock=clock)
        try:
            status = running.status
            while True:
                monitor.show(status)
                phases += [] if phases[-1:] == [status.phase] else [status.phase]
                if status.waiting and str(status.waiting.category) not in waits[-1:]:
                    waits.append(str(status.waiting.category))
                if todo and todo[0].ready(status):
                    todo.pop(0).act(Play(place, backend, running, status))
                if status.is_terminal:
                    break
                told = Told(place, running, reporter, status, phases, waits)
                assert time.monotonic() < give_up_at, f"no end within {seconds:g} s\n{told}"
                status = running.step(1.0)
                if not status.is_terminal and story_needs_events(todo, status):
                    status = running.look_closer()
            status = monitor.finish()
        finally:
            monitor.close()
    told = Told(place, running, reporter, status, phases, waits)
    assert not todo, f"the story ended before all was done to it\n{told}"
    return told


def story_needs_events(todo: list[When], status: WorkloadStatus) -> bool:
    """While something is waited for, causes that only Events tell are read at once, not after the product's 5 seconds."""
    return bool(todo) and status.phase in (Phase.PENDING, Phase.QUEUED, Phase.STARTING)
