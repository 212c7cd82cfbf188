"""The thread that looks after a rank, in this very process."""

from __future__ import annotations

import faulthandler
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.decorators import processes, stacks
from metaflow_extensions.kubernetes_ext.decorators.hang_watch import HangWatch, beat_seconds

Start = Callable[..., HangWatch]


class Datastore:
    """What a rank writes, and what it is asked."""

    def __init__(self) -> None:
        self.written: queue.Queue[dict[str, Any]] = queue.Queue()
        self.asked = ""
        self.fails = 0

    def write(self, record: dict[str, Any]) -> None:
        self.written.put(record)

    def ask(self) -> str:
        if self.fails:
            self.fails -= 1
            raise ConnectionError("away")
        return self.asked

    def next(self) -> dict[str, Any]:
        return self.written.get(timeout=60)


@pytest.fixture
def datastore() -> Datastore:
    return Datastore()


@pytest.fixture
def start(datastore: Datastore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Of the processes of this session, which may compute for other tests, it hears nothing."""
    monkeypatch.setattr(processes, "others_cpu", lambda is_container: 0.0)
    started: list[HangWatch] = []

    def make(limit: float, progress: Callable[[], tuple[int, str]] = lambda: (0, "")) -> HangWatch:
        watch = HangWatch(limit, {"pod_uid": "uid"}, datastore.write, datastore.ask, progress, is_container=False, beat=0.02)
        started.append(watch)
        watch.start()
        return watch

    yield make
    for watch in started:
        watch.stop()


def wait_here(datastore: Datastore) -> dict[str, Any]:
    return datastore.next()


def test_a_rank_that_stands_still_tells_where(datastore: Datastore, start: Start) -> None:
    start(limit=0.1)
    record = wait_here(datastore)
    assert (record["state"], record["pod_uid"]) == ("still", "uid")
    functions = [function for _, _, function, _ in record["stack"]]
    assert functions.index("test_a_rank_that_stands_still_tells_where") < functions.index("wait_here") < functions.index("next")
    assert record["stack"][functions.index("wait_here")][3] == "return datastore.next()"
    assert datastore.written.empty(), "it is told once"


def test_a_rank_that_moves_again_tells_it(datastore: Datastore, start: Start) -> None:
    done = [0, "first"]
    start(limit=0.1, progress=lambda: (done[0], str(done[1])))
    done[0] = 1
    assert datastore.next()["state"] == "still"
    done[:] = 2, "second"
    record = datastore.next()
    assert (record["state"], record["progress"]) == ("moving", "second")


def test_a_rank_answers_once_also_after_the_datastore_was_away(datastore: Datastore, start: Start) -> None:
    datastore.fails, datastore.asked = 3, "token"
    start(limit=60)
    record = datastore.next()
    assert (record["state"], record["answers"]) == ("moving", "token")
    datastore.asked = "another"
    assert datastore.next()["answers"] == "another"
    assert datastore.written.empty()


def test_a_rank_whose_step_has_ended_waits_for_others(datastore: Datastore, start: Start) -> None:
    start(limit=0.1).finish()
    assert datastore.next()["state"] == "finished"


def test_the_user_s_own_timer_is_left_alone(start: Start) -> None:
    before = faulthandler.dump_traceback_later
    watch = start(limit=60)
    faulthandler.dump_traceback_later(3600)
    assert not watch._is_guard_ours
    watch.stop()
    assert faulthandler.dump_traceback_later is before
    faulthandler.cancel_dump_traceback_later()


@pytest.mark.parametrize(("limit", "beat"), [(600, 10), (30, 5), (2, 1)])
def test_how_often_a_rank_listens(limit: float, beat: float) -> None:
    assert beat_seconds(limit) == beat


def test_equal_stacks_are_one_place_and_another_line_is_another() -> None:
    found = [stacks.place(stacks.main_frame()) for _ in range(2)]
    other = stacks.place(stacks.main_frame())
    assert found[0] == found[1] != other


def test_what_every_task_has_around_its_step_is_left_out() -> None:
    def _exec_step_function() -> list[list[Any]]:
        return step()

    def step() -> list[list[Any]]:
        return stacks.described(sys._getframe())

    assert [function for _, _, function, _ in _exec_step_function()] == ["step"]


def test_other_threads_are_shown_by_name() -> None:
    event = threading.Event()
    thread = threading.Thread(target=event.wait, name="loader")
    thread.start()
    try:
        (found,) = [one for one in stacks.others() if one["thread"] == "loader"]
        assert found["stack"][-1][2] in ("wait", "_run", "run")
    finally:
        event.set()
        thread.join()


@pytest.mark.parametrize("is_container", [True, False])
def test_a_child_that_computes_is_seen_while_it_runs(is_container: bool) -> None:
    before = processes.others_cpu(is_container)
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while processes.others_cpu(is_container) < before + 0.05:
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()
