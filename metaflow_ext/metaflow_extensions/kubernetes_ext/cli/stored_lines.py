"""The last lines of a rank whose pod can't be asked any more: each rank saves its log to Metaflow's datastore now and then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from metaflow.mflog import LOG_SOURCES
from metaflow.mflog.mflog import merge_logs

from ..decorators.launch_spec import TaskRef
from ..runtime.logs import KEPT_LINES
from ..spec.names import TaskIds
from ..status.model import WorkloadStatus


def with_stored_lines(
    status: WorkloadStatus, flow_datastore: Any, task: TaskRef, ids: TaskIds, tell: Callable[[str], None]
) -> WorkloadStatus:
    """The failure with the culprit's lines from the datastore where there are none from its pod."""
    failure = status.failure
    if failure is None or failure.last_lines or failure.rank is None or failure.rank >= ids.size:
        return status
    try:
        lines = last_lines(flow_datastore, task.run_id, task.step, ids.of_rank(failure.rank), task.attempt)
    except Exception as error:  # noqa: BLE001  (of any datastore; the cause of the failure is known without)
        tell(f"The log of rank {failure.rank} could not be read from the datastore: {type(error).__name__}: {error}")
        return status
    return replace(status, failure=replace(failure, last_lines=lines))


def last_lines(flow_datastore: Any, run_id: str, step: str, task_id: str, attempt: int) -> tuple[str, ...]:
    """Of both streams, in time order."""
    stored = flow_datastore.get_task_datastore(run_id, step, task_id, attempt=attempt, data_metadata={}, allow_not_done=True)
    logs = [log for stream in ("stdout", "stderr") for _, log in stored.load_logs(LOG_SOURCES, stream)]
    return tuple(line.msg.decode("utf-8", errors="replace").rstrip() for line in [*merge_logs(logs)][-KEPT_LINES:])
