"""After a workload's end: every rank's metadata for Metaflow's client, from the rank itself and from what we have seen, and in
control's all that `kubernetes why`, `describe`, `events` and `manifest` can tell once the cluster has forgotten it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from metaflow.metadata_provider.util import sync_local_metadata_from_datastore
from metaflow.metaflow_config import DATASTORE_LOCAL_DIR

from ..decorators import task_metadata
from ..decorators.launch_spec import TaskRef
from ..runtime.timeline import Timeline
from ..spec.names import TaskIds
from ..status import record
from ..status.model import RankStatus, WorkloadStatus
from .secrets import without_secrets

# Metadata of control's task, JSON, beside task_metadata.FAILURE.
STATUS = "kubernetes-status"
TIMELINE = "kubernetes-timeline"
MANIFEST = "kubernetes-manifest"
_LARGEST_MANIFEST = 256 * 1024  # characters; a larger one is not kept
_AT_ONCE = 8


class Records:
    """Of one attempt of one task. `obj` is click's: metadata, flow_datastore."""

    def __init__(self, obj: Any, task: TaskRef, ids: TaskIds, timeline: Timeline, tell: Callable[[str], None]) -> None:
        self._metadata = obj.metadata
        self._flow_datastore = obj.flow_datastore
        self._task = task
        self._ids = ids
        self._timeline = timeline
        self._tell = tell
        self.manifest: Mapping[str, Any] | None = None  # as posted, once it is

    def keep(self, status: WorkloadStatus, *, is_in_haste: bool = False) -> None:
        """`is_in_haste`: only what is about the whole. What goes wrong here must not hide how the workload ended."""
        of_control = of_workload(status, self._timeline, self.manifest)
        try:
            if is_in_haste:
                self._register_rank(0, of_control)
            else:
                self._synchronise()
                self._register(status, of_control)
        except Exception as error:  # noqa: BLE001  (of any datastore or metadata service)
            self._tell(f"The metadata of the ranks could not be kept: {type(error).__name__}: {error}")

    def _synchronise(self) -> None:
        if self._metadata.TYPE == "local" and self._flow_datastore.TYPE != "local":  # else the ranks wrote to it themselves
            task = self._task
            synchronise(self._flow_datastore, task.run_id, task.step, self._ids.all(), task.attempt)

    def _register(self, status: WorkloadStatus, of_control: Mapping[str, Any]) -> None:
        values: dict[int, dict[str, Any]] = {0: {}}
        values |= {rank.rank: end_of_rank(rank) for rank in status.ranks if rank.rank < self._ids.size and rank.pod}
        values[0] |= of_control
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(self._register_rank, values, values.values()))

    def _register_rank(self, rank: int, values: dict[str, Any]) -> None:
        task, task_id = self._task, self._ids.of_rank(rank)
        self._metadata.register_task_id(task.run_id, task.step, task_id, task.attempt)
        self._metadata.register_metadata(task.run_id, task.step, task_id, task_metadata.entries(values, task.attempt))


def synchronise(flow_datastore: Any, run_id: str, step: str, task_ids: Sequence[str], attempt: int) -> list[str]:
    """Take over the local metadata that the ranks left in the datastore. Returns the ids of tasks that left none, which is
    so where a rank died early: the reason is told elsewhere, so it is no error here."""
    missing = []
    for task_id in task_ids:
        task_datastore = flow_datastore.get_task_datastore(
            run_id, step, task_id, attempt=attempt, data_metadata={}, allow_not_done=True
        )
        if task_datastore.has_metadata("local_metadata"):
            sync_local_metadata_from_datastore(DATASTORE_LOCAL_DIR, task_datastore)
        else:
            missing.append(task_id)
    return missing


def of_workload(status: WorkloadStatus, timeline: Timeline, manifest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Control's metadata about the whole. Secrets are not in it, and its size is bounded."""
    kept = record.bounded(status)
    posted = json.dumps(without_secrets(manifest)[0]) if manifest else None
    return {
        task_metadata.FAILURE: json.dumps(record.failure_as_json(kept.failure)) if kept.failure else None,
        STATUS: json.dumps(record.as_json(kept)),
        TIMELINE: json.dumps(timeline.as_json()),
        MANIFEST: posted if posted is None or len(posted) <= _LARGEST_MANIFEST else None,
    }


def end_of_rank(rank: RankStatus) -> dict[str, Any]:
    return {
        "kubernetes-exit-code": None if rank.exit_code is None else str(rank.exit_code),
        "kubernetes-end-reason": rank.reason or None,
        "kubernetes-started-at": rank.started_at and rank.started_at.isoformat(),
        "kubernetes-finished-at": rank.finished_at and rank.finished_at.isoformat(),
    }
