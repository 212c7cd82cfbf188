"""What a TARGET names, living or dead: workloads in the cluster, and what their step processes have left in Metaflow's metadata."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from metaflow.exception import MetaflowException

from ..cluster.client import KubernetesClient
from ..decorators.host_errors import KubernetesError
from ..decorators.task_metadata import FAILURE
from ..errors import ClusterError
from ..spec.names import TaskIds
from ..status import record
from ..status.model import Observation, Phase, WorkloadStatus
from .rank_records import MANIFEST, STATUS, TIMELINE
from .targets import Target, identity, look, selector, workloads


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One workload. `manifest` is the object in the cluster, else as it was posted, {} if unknown; `observation` is None for
    what is not in the cluster. `timeline` has entries {"at": RFC 3339, "what": text}."""

    whose: Mapping[str, str]  # targets.identity
    status: WorkloadStatus
    manifest: Mapping[str, Any]
    observation: Observation | None = None
    timeline: tuple[Mapping[str, str], ...] = field(default=())

    @property
    def pathspec(self) -> str:
        """RUN/STEP/TASK."""
        return "/".join(self.whose[key] for key in ("run_id", "step", "task_id"))


def found(flow: str, target: Target) -> list[Subject]:
    """At least one. Raises MetaflowException."""
    there = subjects(flow, target)
    if not there:
        raise MetaflowException(f"Nothing of {target} is in the cluster, nor has its run left anything in Metaflow's metadata.")
    return there


def subjects(flow: str, target: Target) -> list[Subject]:
    """The living ones first. What has ended is told from the metadata if that knows of it, which has its last lines.

    Raises KubernetesError when the cluster does not answer and the metadata knows nothing either.
    """
    kept = {one.pathspec: one for one in remembered(flow, target)}
    try:
        there = list(living(flow, target))
    except ClusterError as error:
        if not kept:
            raise KubernetesError(str(error)) from error
        print(f"The cluster is not asked, only Metaflow's metadata: {error}", file=sys.stderr)
        there = []
    merged = [_better(one, kept.pop(one.pathspec, None)) for one in there]
    return [*merged, *kept.values()]


def living(flow: str, target: Target) -> Iterator[Subject]:
    """Those in the cluster, as they are now. Raises ClusterError."""
    with closing(KubernetesClient()) as client:
        for backend, workload, _ in workloads(client, selector(flow, target)):
            running = look(client, backend, workload)
            yield Subject(whose=identity(workload), status=running.status, manifest=workload, observation=running.observation)


def remembered(flow: str, target: Target) -> Iterator[Subject]:
    """Those that Metaflow's metadata knows of."""
    from metaflow import Run, namespace
    from metaflow.exception import MetaflowNotFound

    namespace(None)
    try:
        run = Run(f"{flow}/{target.run_id}")
    except MetaflowNotFound:
        return
    for step in run:
        for task in step if target.step in ("", step.id) else ():
            control, rank = TaskIds.parse(task.id)
            if rank == 0 and target.task_id in ("", control):
                subject = of_metadata(flow, run.id, step.id, task.id, task.metadata_dict)
                if subject is not None:
                    yield subject


def of_metadata(flow: str, run_id: str, step: str, task_id: str, metadata: Mapping[str, str]) -> Subject | None:
    """From the metadata of a task; None if none of ours is in it. Newer metadata has the whole status, older the failure."""
    status, failure, manifest = (_read(metadata, key) for key in (STATUS, FAILURE, MANIFEST))
    if not isinstance(status, Mapping):
        if not isinstance(failure, Mapping):
            return None
        status = {"phase": Phase.FAILED.value, "failure": failure}
    timeline = _read(metadata, TIMELINE)
    manifest = manifest if isinstance(manifest, Mapping) else {}
    return Subject(
        whose={**identity(manifest), "flow": flow, "run_id": run_id, "step": step, "task_id": task_id},
        status=record.status_of(status),
        manifest=manifest,
        timeline=tuple(entry for entry in timeline if isinstance(entry, Mapping)) if isinstance(timeline, list) else (),
    )


def _read(metadata: Mapping[str, str], key: str) -> Any:
    try:
        return json.loads(metadata.get(key) or "null")
    except ValueError:
        return None


def _better(there: Subject, kept: Subject | None) -> Subject:
    is_same = kept is not None and kept.whose["attempt"] == there.whose["attempt"]
    return kept if kept is not None and is_same and there.status.is_terminal else there
