"""After a workload's end: every rank's metadata for Metaflow's client, from the rank itself and from what we have seen."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import Any

from metaflow.metadata_provider.util import sync_local_metadata_from_datastore
from metaflow.metaflow_config import DATASTORE_LOCAL_DIR

from ..decorators import task_metadata
from ..spec.names import TaskIds
from ..status.model import Failure, RankStatus, WorkloadStatus

_AT_ONCE = 8


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


def register(metadata: Any, run_id: str, step: str, ids: TaskIds, attempt: int, status: WorkloadStatus) -> None:
    """Add to every rank's metadata how it ended, and to control's why the gang failed."""

    def one(rank: RankStatus) -> None:
        values = end_of_rank(rank)
        if rank.rank == 0 and status.failure is not None:
            values["kubernetes-failure"] = json.dumps(failure_fields(status.failure))
        task_id = ids.of_rank(rank.rank)
        metadata.register_task_id(run_id, step, task_id, attempt)
        metadata.register_metadata(run_id, step, task_id, task_metadata.entries(values, attempt))

    ended = [rank for rank in status.ranks if rank.rank < ids.size and (rank.pod or rank.rank == 0)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(one, ended))


def end_of_rank(rank: RankStatus) -> dict[str, Any]:
    return {
        "kubernetes-exit-code": None if rank.exit_code is None else str(rank.exit_code),
        "kubernetes-end-reason": rank.reason or None,
        "kubernetes-started-at": rank.started_at and rank.started_at.isoformat(),
        "kubernetes-finished-at": rank.finished_at and rank.finished_at.isoformat(),
    }


def failure_fields(failure: Failure) -> dict[str, Any]:
    """The failure as JSON-able values."""
    fields = asdict(failure)
    fields["category"] = failure.category.value
    fields["at"] = failure.at and failure.at.isoformat()
    fields["last_lines"] = [*failure.last_lines]
    return fields
