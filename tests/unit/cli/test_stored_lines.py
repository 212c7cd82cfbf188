"""The last lines of a rank from the datastore, as its own process saves them there."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from metaflow.datastore import FlowDataStore
from metaflow.mflog import TASK_LOG_SOURCE
from metaflow.plugins.datastores.local_storage import LocalStorage

from metaflow_extensions.kubernetes_ext.cli.stored_lines import with_stored_lines
from metaflow_extensions.kubernetes_ext.decorators.launch_spec import TaskRef
from metaflow_extensions.kubernetes_ext.spec.names import TaskIds
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure, Phase, WorkloadStatus

TASK = TaskRef(flow="Flow", run_id="1", step="train", task_id="7", attempt=1, user="", num_parallel=2)
IDS = TaskIds("7", 2)


@pytest.fixture
def datastore(tmp_path: Path) -> Any:
    made = FlowDataStore(
        "Flow", SimpleNamespace(TYPE="local"), storage_impl=LocalStorage, ds_root=str(tmp_path / "store"), metadata=None
    )
    made.metadata = SimpleNamespace(add_sticky_tags=lambda *args, **kwargs: None)
    return made


def save(datastore: Any, task_id: str, attempt: int, **streams: bytes) -> None:
    stored = datastore.get_task_datastore("1", "train", task_id, attempt=attempt, data_metadata={}, mode="w")
    stored.init_task()
    stored.save_logs(TASK_LOG_SOURCE, streams)


def stamped(second: int, text: str) -> bytes:
    return f"[MFLOG|0|2026-01-02T03:04:{second:02}.000000Z|task|{second}]{text}\n".encode()


def failed(rank: int | None = 1, *lines: str) -> WorkloadStatus:
    failure = Failure(category=Category.NODE_LOST, summary="It was lost.", resolution="", rank=rank, last_lines=lines)
    return WorkloadStatus(phase=Phase.FAILED, size=2, failure=failure)


def lines(status: WorkloadStatus, datastore: Any, told: list[str]) -> tuple[str, ...]:
    found = with_stored_lines(status, datastore, TASK, IDS, told.append).failure
    assert found is not None
    return found.last_lines


def test_both_streams_in_time_order_of_this_rank_and_attempt(datastore: Any) -> None:
    save(datastore, "7-worker-0", 0, stdout=stamped(1, "an earlier attempt"))
    save(datastore, "7-worker-0", 1, stdout=stamped(1, "one") + stamped(3, "drei \u00fc"), stderr=stamped(2, "two"))
    save(datastore, "7", 1, stdout=stamped(1, "control"))
    told: list[str] = []
    assert lines(failed(), datastore, told) == ("one", "two", "drei \u00fc")
    assert told == []


def test_what_the_pod_said_goes_first_and_no_rank_has_no_lines(datastore: Any) -> None:
    save(datastore, "7-worker-0", 1, stdout=stamped(1, "one"))
    assert lines(failed(1, "from the pod"), datastore, []) == ("from the pod",)
    assert lines(failed(None), datastore, []) == ()


def test_nothing_saved_and_a_broken_datastore_hide_nothing(datastore: Any) -> None:
    told: list[str] = []
    assert lines(failed(), datastore, told) == ()
    assert told == []
    assert lines(failed(), None, told) == ()
    assert told[0].startswith("The log of rank 1 could not be read from the datastore: AttributeError: ")
