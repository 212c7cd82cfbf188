"""Runs small Jobs to their end, or to the point where it is clear that they have none, and deletes them in all cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..backends.job import JobBackend
from ..cluster.protocol import JOBS, ClusterClient
from ..errors import ClusterError
from ..status.model import WorkloadStatus
from ..status.patience import Patience
from .clock import Clock
from .resources import kubectl_delete
from .running import RunningJobSet
from .submit import submit, withdraw

_STEP_SECONDS = 0.2
_SUBMIT_SECONDS, _KILL_SECONDS = 10.0, 20.0

Outcome = WorkloadStatus | ClusterError


@dataclass
class Probes:
    """`outcomes` are those of the manifests, in their order: the last status, or why there is none. `left` are kubectl commands
    for what could not be deleted."""

    client: ClusterClient
    clock: Clock
    limit: float  # seconds, for each
    outcomes: list[Outcome | None] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def run(self, manifests: Sequence[Mapping[str, Any]]) -> None:
        """Side by side. Each carries the annotation of its submission (`submit.stamped`)."""
        self.outcomes = [None] * len(manifests)
        running: dict[int, tuple[RunningJobSet, Patience]] = {}
        try:
            for number, manifest in enumerate(manifests):
                try:
                    running[number] = self._start(manifest)
                except ClusterError as error:
                    self.outcomes[number] = error
            while running:
                for number in [*running]:
                    running[number] = (one, patience) = self._step(*running[number])
                    if patience.is_over(one.status, one.observation.at):
                        self.outcomes[number] = one.settle()
                        del running[number]
                        one.close()
                        self._delete(manifests[number])
        finally:
            for one, _ in running.values():
                one.close()
            for number, manifest in enumerate(manifests):
                if self.outcomes[number] is None:  # interrupted, maybe between the creation and its answer
                    self._delete(manifest)

    def _start(self, manifest: Mapping[str, Any]) -> tuple[RunningJobSet, Patience]:
        namespace = manifest["metadata"]["namespace"]
        created = submit(self.client, JOBS, manifest, namespace=namespace, clock=self.clock, patience=_SUBMIT_SECONDS)
        running = RunningJobSet(self.client, JobBackend(), created, namespace=namespace, clock=self.clock)
        running.start()
        return running, Patience(limit=self.limit, started=self.clock.now())

    def _step(self, running: RunningJobSet, patience: Patience) -> tuple[RunningJobSet, Patience]:
        status = running.step(_STEP_SECONDS)
        return running, patience.seen(status, running.observation.at)

    def _delete(self, manifest: Mapping[str, Any]) -> None:
        metadata = manifest["metadata"]
        try:
            withdraw(self.client, JOBS, manifest, namespace=metadata["namespace"])
        except ClusterError:
            self.left.append(kubectl_delete(JOBS, metadata["namespace"], metadata["name"]))
