"""The process around a step: its log is kept as core's own tools would keep it, and its end is judged right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from metaflow.datastore import FlowDataStore
from metaflow.mflog import LOG_SOURCES, update_delay
from metaflow.mflog.mflog import merge_logs, parse
from metaflow.plugins.datastores.local_storage import LocalStorage

from metaflow_extensions.kubernetes_ext.decorators import task_process
from metaflow_extensions.kubernetes_ext.decorators.completion import COMPLETE
from metaflow_extensions.kubernetes_ext.decorators.task_process import INCOMPLETE, Saver, stamped

DONE = f'; touch "${COMPLETE}"'


def environment(home: Path, datastore: str = "local") -> dict[str, str]:
    return {
        **os.environ,
        "MF_PATHSPEC": "Flow/1/train/7",
        "MF_ATTEMPT": "2",
        "MF_DATASTORE": datastore,
        "MF_DATASTORE_ROOT": str(home / "store"),
        "MFLOG_STDOUT": str(home / "mflog_stdout"),
        "MFLOG_STDERR": str(home / "mflog_stderr"),
        COMPLETE: str(home / "complete"),
    }


def command(script: str) -> list[str]:
    return [sys.executable, "-m", task_process.__name__, script]


def run(home: Path, script: str, datastore: str = "local") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command(script), env=environment(home, datastore), capture_output=True, timeout=60, check=False)


def saved(home: Path, stream: str, attempt: int = 2) -> list[bytes]:
    """As Metaflow's client reads it."""
    store = FlowDataStore("Flow", None, storage_impl=LocalStorage, ds_root=str(home / "store"))
    task = store.get_task_datastore("1", "train", "7", attempt=attempt, data_metadata={}, allow_not_done=True)
    return [line.msg for line in merge_logs([log for _, log in task.load_logs(LOG_SOURCES, stream)])]


def test_lines_are_stamped_as_core_reads_them() -> None:
    line = parse(stamped(b"some ] text"))
    assert (line.msg, line.logsource, line.version, line.should_persist) == (b"some ] text", b"task", b"0", None)
    assert abs(line.utc_tstamp - datetime.now(timezone.utc).replace(tzinfo=None)) < timedelta(minutes=10)


@pytest.mark.parametrize("seconds", [0, 60, 600, 900, 1380, 86400])
def test_logs_are_saved_as_often_as_core_does(seconds: float) -> None:
    assert task_process._update_delay(seconds) == pytest.approx(update_delay(seconds))


def test_both_streams_are_passed_on_and_saved(tmp_path: Path) -> None:
    done = run(tmp_path, r'printf "one\n\xff\xfe two\nno end"; echo error >&2' + DONE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"one\n\xff\xfe two\nno end", b"error\n")
    assert saved(tmp_path, "stdout") == [b"one", b"\xff\xfe two", b"no end"]
    assert saved(tmp_path, "stderr") == [b"error"]


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 3", 3, id="its own code"),
        pytest.param("kill -KILL $$", 137, id="killed"),
        pytest.param("true" + DONE, 0, id="complete"),
        pytest.param("no-such-program", 127, id="no such program"),
    ],
)
def test_the_exit_code_is_that_of_a_shell(tmp_path: Path, script: str, code: int) -> None:
    assert run(tmp_path, script).returncode == code


def test_a_step_that_leaves_early_with_0_has_failed_and_its_log_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, "echo begun")
    assert (done.returncode, done.stderr.decode()) == (1, f"{INCOMPLETE}\n")
    assert saved(tmp_path, "stderr") == [INCOMPLETE.encode()]


def test_what_a_step_leaves_running_is_not_waited_for(tmp_path: Path) -> None:
    done = subprocess.run(
        command(f"sleep 300 & echo $! > {tmp_path}/pid; echo out; exit 4"),
        env=environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False,
    )  # fmt: skip
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert done.returncode == 4
    assert saved(tmp_path, "stdout") == [b"out"]


def test_a_log_that_can_t_be_saved_is_said_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    done = run(tmp_path, "echo out" + DONE)
    assert (done.returncode, done.stdout) == (0, b"out\n")
    assert b"The log of this task could not be saved: " in done.stderr
    assert run(tmp_path, "true" + DONE, datastore="nowhere").returncode == 0


def test_output_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(command("seq 20000" + DONE), env=environment(tmp_path), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) == 0
    assert len(saved(tmp_path, "stdout")) == 20000


def test_what_is_new_is_saved_while_the_step_runs(tmp_path: Path) -> None:
    with subprocess.Popen(
        command(f"echo early; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo late" + DONE), env=environment(tmp_path)
    ) as process:
        give_up_at = time.monotonic() + 50
        while saved(tmp_path, "stdout") != [b"early"]:
            assert time.monotonic() < give_up_at
            time.sleep(0.1)
        (tmp_path / "go").touch()
        assert process.wait(60) == 0
    assert saved(tmp_path, "stdout") == [b"early", b"late"]


def test_a_long_log_is_saved_by_its_path_and_only_when_it_has_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_process, "_FIRST_LOOK", 0.01)
    monkeypatch.setattr(task_process, "_update_delay", lambda seconds: 0.01)
    monkeypatch.setattr(task_process, "_SMALL", 10)
    path, calls = tmp_path / "out", []

    def save(logs: Mapping[str, Any]) -> None:
        calls.append(dict(logs))

    path.write_bytes(b"short")
    saver = Saver({"stdout": path, "stderr": tmp_path / "missing"}, lambda: save)
    while not calls:
        time.sleep(0.01)
    path.write_bytes(b"longer than ten")
    while len(calls) < 2:
        time.sleep(0.01)
    time.sleep(0.1)
    saver.finish()
    assert calls == [{"stdout": b"short"}, {"stdout": path}]
