"""Where a task's log is kept: in core's files, at core's places."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Save(Protocol):
    """Takes {stream: its whole log, or a file with that}."""

    def __call__(self, logs: Mapping[str, bytes | Path]) -> None: ...


def saver_of(environment: Mapping[str, str]) -> Save:
    """As metaflow.mflog.save_logs, which does it in a process of its own each time."""
    flow, run_id, step, task_id = environment["MF_PATHSPEC"].split("/")
    attempt, root = int(environment["MF_ATTEMPT"]), environment["MF_DATASTORE_ROOT"]
    if environment["MF_DATASTORE"] == "local":
        return _files(Path(root, flow, run_id, step, task_id), attempt)
    from metaflow.datastore import FlowDataStore
    from metaflow.mflog import TASK_LOG_SOURCE
    from metaflow.plugins import DATASTORES

    storage = next(each for each in DATASTORES if environment["MF_DATASTORE"] == each.TYPE)
    flow_datastore = FlowDataStore(flow, None, storage_impl=storage, ds_root=root)
    task = flow_datastore.get_task_datastore(run_id, step, task_id, attempt, mode="w")
    return lambda logs: task.save_logs(TASK_LOG_SOURCE, logs)


def _files(folder: Path, attempt: int) -> Save:
    """What TaskDataStore.save_logs and LocalStorage do, without the import of all of Metaflow, which is half of what a short
    task computes, on a machine that the ranks of a gang share."""

    def save(logs: Mapping[str, bytes | Path]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for stream, log in logs.items():
            handle, path = tempfile.mkstemp(dir=folder)
            with os.fdopen(handle, "wb") as file:
                file.write(log.read_bytes() if isinstance(log, Path) else log)
            os.replace(path, folder / f"{attempt}.task_{stream}.log")

    return save
