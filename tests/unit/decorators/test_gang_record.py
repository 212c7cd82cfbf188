"""The commit barrier, on a real local datastore: what must not look successful, and what must."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from metaflow.plugins.datastores.local_storage import LocalStorage

from metaflow_extensions.kubernetes_ext.decorators import gang_record
from metaflow_extensions.kubernetes_ext.decorators.gang_record import Records


class Datastore:
    """The two things of a FlowDataStore that records use, on real storage."""

    flow_name = "Flow"

    def __init__(self, root: Path) -> None:
        self._storage_impl = LocalStorage(str(root))


class Steps:
    """A clock whose sleeps let other ranks do something."""

    def __init__(self, *actions: Callable[[], Any]) -> None:
        self.now, self.actions = 0.0, list(actions)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.actions:
            self.actions.pop(0)()

    def clock(self) -> float:
        return self.now


@pytest.fixture
def records(tmp_path: Path) -> Records:
    return Records(Datastore(tmp_path), "1", "train", 0)


def done(control: str) -> dict[str, Any]:
    return {"done": True, "control": control}


def test_records_are_read_back_and_missing_ones_left_out(records: Records) -> None:
    records.write("7", {"rank": 0})
    assert records.read(["7", "7-worker-0"]) == {"7": {"rank": 0}}


def test_attempts_don_t_see_each_other(records: Records, tmp_path: Path) -> None:
    records.write("7", {"rank": 0})
    assert Records(Datastore(tmp_path), "1", "train", 1).read(["7"]) == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff"])
def test_a_torn_record_is_none(content: bytes) -> None:
    assert gang_record.parse(content) is None


def test_control_waits_until_every_worker_has_stated_that_it_is_done(records: Records) -> None:
    beats: list[int] = []
    steps = Steps(lambda: records.write("w0", done("uid")), lambda: records.write("w1", done("uid")))
    gang_record.wait_for_workers(records, ["w0", "w1"], "uid", lambda: beats.append(1), 60, steps.sleep, steps.clock)
    assert len(beats) == 3


def test_a_worker_s_statement_to_a_control_of_an_earlier_start_counts_nothing(records: Records) -> None:
    records.write("w0", done("dead"))
    steps = Steps()
    with pytest.raises(TimeoutError, match="w0"):
        gang_record.wait_for_workers(records, ["w0"], "uid", lambda: None, 60, steps.sleep, steps.clock)


def test_a_worker_that_failed_does_not_let_control_commit(records: Records) -> None:
    records.write("w0", {"done": False, "control": "uid", "finished": "now"})
    steps = Steps()
    with pytest.raises(TimeoutError):
        gang_record.wait_for_workers(records, ["w0"], "uid", lambda: None, 60, steps.sleep, steps.clock)


def test_a_worker_takes_a_control_for_live_only_when_its_beat_advances(records: Records) -> None:
    records.write("7", {"pod_uid": "dead", "beat": 4})
    steps = Steps(
        lambda: None,
        lambda: records.write("7", {"pod_uid": "new", "beat": 0}),
        lambda: records.write("7", {"pod_uid": "new", "beat": 1}),
    )
    assert gang_record.wait_for_live_control(records, "7", 60, steps.sleep, steps.clock) == "new"


def test_a_worker_does_not_take_the_record_of_a_dead_control_for_an_answer(records: Records) -> None:
    records.write("7", {"pod_uid": "dead", "beat": 4})
    steps = Steps()
    with pytest.raises(TimeoutError, match="7"):
        gang_record.wait_for_live_control(records, "7", 60, steps.sleep, steps.clock)


def test_a_gang_of_one_has_nobody_to_wait_for(records: Records) -> None:
    steps = Steps()
    gang_record.wait_for_workers(records, [], "uid", lambda: None, 60, steps.sleep, steps.clock)
    assert steps.now == 0


def test_a_beat_advances_the_record(records: Records) -> None:
    beat = gang_record.Beat(records, "7", {"pod_uid": "uid"})
    beat()
    beat()
    beat.stop()
    assert records.read(["7"])["7"] == {"pod_uid": "uid", "beat": 2}
