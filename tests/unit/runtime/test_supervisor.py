"""What the supervisor deletes when a step process, the run, or both are killed. Real sockets, a deletion that only takes notes."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.errors import Unavailable
from metaflow_extensions.kubernetes_ext.runtime import supervisor
from metaflow_extensions.kubernetes_ext.runtime.supervision import FINISHED, Owned, Supervised, Supervision
from metaflow_extensions.kubernetes_ext.runtime.supervisor import Supervisor

GANG = Owned(
    group="jobset.x-k8s.io",
    version="v1alpha2",
    plural="jobsets",
    kind="JobSet",
    namespace="team",
    name="train-1",
    submission="s1",
)
SWEEP = replace(GANG, name="sweep-2", submission="s2")


class Scene:
    """A supervisor, a run, and its step processes."""

    def __init__(self, address: str, run: socket.socket, deleted: list[str], thread: threading.Thread) -> None:
        self.address = address
        self.run = run
        self.deleted = deleted
        self.thread = thread
        self.detached: list[str] = []

    def step(self, name: str = "step") -> Supervised:
        return Supervised(self.address, lambda: self.detached.append(name))

    def finish(self) -> str:
        """The run ends by itself; what it is told."""
        self.run.sendall(FINISHED.encode() + b"\n")
        with self.run.makefile("r") as lines:
            text = lines.read()
        self.thread.join(60)
        return text

    def kill_run(self) -> None:
        self.run.close()
        self.thread.join(60)

    def until_deleted(self, *names: str) -> None:
        give_up_at = time.monotonic() + 60
        while sorted(self.deleted) != sorted(names) and time.monotonic() < give_up_at:
            time.sleep(0.01)
        assert sorted(self.deleted) == sorted(names)


@contextmanager
def scene(folder: Path, appears_at_look: int = 0, error: Exception | None = None) -> Iterator[Scene]:
    deleted: list[str] = []
    looks: dict[Owned, int] = {}

    def delete(workload: Owned) -> bool:
        looks[workload] = looks.get(workload, -1) + 1
        if error is not None:
            raise error
        if looks[workload] < appears_at_look and not workload.is_beside:
            return False
        deleted.append(workload.name)
        return True

    listening = socket.socket(socket.AF_UNIX)
    address = os.path.relpath(folder / "s")  # a Unix socket's path has to be short
    listening.bind(address)
    listening.listen()
    ours, its = socket.socketpair()
    made = Supervisor(delete, looks=(0.0, 0.05, 0.1))
    thread = threading.Thread(target=lambda: asyncio.run(made.run(its, listening)))
    thread.start()
    try:
        yield Scene(address, ours, deleted, thread)
    finally:
        ours.close()
        thread.join(60)
        assert not thread.is_alive(), "a supervisor ends with its run"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(supervisor, "KILLED_TOGETHER_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "LAST_STEPS_SECONDS", 0.5)
    monkeypatch.chdir(tmp_path)


def test_the_workload_of_a_killed_step_process_is_deleted_and_the_run_is_told(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        step = it.step()
        step.own(GANG)
        step.close()
        it.until_deleted("train-1")
        assert it.finish() == "JobSet train-1 deleted with its pods: its step process had been killed.\n"
        assert not it.detached


def test_a_released_workload_is_left_alone(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        step = it.step()
        step.own(GANG)
        step.release()
        step.close()
        assert it.finish() == ""
    assert it.deleted == []


def test_every_name_that_was_tried_is_looked_for(tmp_path: Path) -> None:
    with scene(tmp_path, appears_at_look=1) as it:
        step = it.step()
        step.own(GANG)
        step.own(SWEEP)
        step.close()
        it.finish()
    assert "sweep-2" in it.deleted
    assert "train-1" in it.deleted


def test_a_create_that_was_on_its_way_is_found_by_a_later_look(tmp_path: Path) -> None:
    with scene(tmp_path, appears_at_look=2) as it:
        step = it.step()
        step.own(GANG)
        step.close()
        it.until_deleted("train-1")
        it.finish()


def test_what_is_beside_a_workload_goes_too_and_ends_no_search(tmp_path: Path) -> None:
    with scene(tmp_path, appears_at_look=1) as it:
        step = it.step()
        step.own(GANG)
        step.own(replace(GANG, group="scheduling.x-k8s.io", kind="PodGroup", plural="podgroups", is_beside=True))
        step.close()
        it.until_deleted("train-1", "train-1")
        assert it.finish() == "JobSet train-1 deleted with its pods: its step process had been killed.\n"


def test_when_the_run_is_killed_its_workloads_go_on_and_its_step_processes_detach(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        first, second = it.step("first"), it.step("second")
        first.own(GANG)
        second.own(SWEEP)
        time.sleep(0.05)
        it.kill_run()
        give_up_at = time.monotonic() + 60
        while len(it.detached) < 2 and time.monotonic() < give_up_at:
            time.sleep(0.01)
        assert sorted(it.detached) == ["first", "second"]
        first.close()
        second.close()
    assert it.deleted == []


def test_when_all_are_killed_at_once_the_workloads_go_on(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        step = it.step()
        step.own(GANG)
        time.sleep(0.05)
        step.close()
        it.kill_run()
    assert it.deleted == []


def test_step_processes_that_die_with_a_run_that_ended_by_itself_are_cleaned_up_after(tmp_path: Path) -> None:
    with scene(tmp_path) as it:
        step = it.step()
        step.own(GANG)
        time.sleep(0.05)
        threading.Timer(0.1, step.close).start()
        assert "train-1 deleted" in it.finish()
        assert it.deleted == ["train-1"]


def test_what_cannot_be_deleted_is_told_with_the_command(tmp_path: Path) -> None:
    with scene(tmp_path, error=Unavailable("connection refused.")) as it:
        step = it.step()
        step.own(GANG)
        step.close()
        told = it.finish()
    assert "connection refused." in told
    assert "kubectl delete jobsets.jobset.x-k8s.io train-1 --namespace team" in told


@pytest.mark.parametrize("address", [None, "nothing-listens-here"])
def test_a_step_process_needs_no_supervisor(address: str | None) -> None:
    step = Supervised(address, lambda: None)
    step.own(GANG)
    step.release()
    step.close()


def test_the_process_ends_with_its_run_and_leaves_nothing() -> None:
    told: list[str] = []
    supervision = Supervision()
    folder = Path(supervision.address).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.getsid(supervision.pid) == supervision.pid, "signals to the terminal's processes don't reach it"
    step = Supervised(supervision.address, lambda: None)
    step.own(GANG)
    step.release()
    step.close()
    supervision.finish(told.append)
    assert told == []
    assert supervision._process.wait(60) == 0
    assert not folder.exists()


def test_the_process_ends_when_its_run_is_killed() -> None:
    code = (
        "import os, signal\n"
        "from metaflow_extensions.kubernetes_ext.runtime.supervision import Supervision\n"
        "made = Supervision()\nprint(made.pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    printed = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False).stdout
    give_up_at = time.monotonic() + 60
    while Path("/proc", printed.strip()).exists() and time.monotonic() < give_up_at:
        time.sleep(0.02)
    with pytest.raises(ProcessLookupError):
        os.kill(int(printed), 0)
