"""Gangs that fail: what the user reads, what is left, and that nothing of a failed gang is taken for good."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.flows.conftest import GANG_OPTIONS, Runner, running_gang

KUBERNETES = f"kubernetes:{GANG_OPTIONS}"


def left_over(runner: Runner, flow: str = "GangFlow", step: str = "train") -> str:
    """Names of what is left of a step in the cluster."""
    return runner.kubectl("get", "jobsets,jobs,pods", "-o", "name", "-l", f"metaflow.org/flow={flow},metaflow.org/step={step}")


def eventually(check: Callable[[], bool], seconds: float = 60) -> bool:
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


def test_resume_clones_a_good_gang(runner: Runner) -> None:
    assert runner.run("late_failure_flow.py", "run", "--with", KUBERNETES).code != 0
    (runner.home / "healed").touch()
    done = runner.run("late_failure_flow.py", "resume", "--with", KUBERNETES)
    assert done.code == 0, str(done)
    assert "rank 0 works" not in done.output
    assert "ranks [0, 1, 2]" in done.output


def test_a_rank_that_fails_after_the_others_finished_fails_the_gang(runner: Runner) -> None:
    words = ["--size", "3", "--fail-rank", "2", "--fail-after", "6"]
    done = runner.gang("run", *words)
    assert done.code != 0, str(done)
    assert not is_done(runner, "0")
    resumed = runner.gang("resume")
    assert "hello from rank 0 of 3" in resumed.output, "control's results were taken for good"


@pytest.mark.long
def test_catch_keeps_why_a_gang_and_a_plain_step_failed(runner: Runner) -> None:
    done = runner.run("catch_flow.py", "run", timeout=400)
    assert done.code == 0, str(done)
    said = "\n".join(line.partition("] ")[2] for line in done.output.splitlines() if "/end/" in line)
    gang, _, plain = said.partition("plain: ")
    assert "gang: 1 StepFailedOnKubernetes Worker 0 (rank 1, pod catchflow-train-" in gang, str(done)
    assert "failed with exit code 3." in gang
    assert "Category user_error." in gang
    assert "| attempt 1 of rank 1" in gang
    assert "failed with exit code 4." in plain
    assert "| about to leave" in plain
    assert left_over(runner, "CatchFlow") == ""


@pytest.mark.long
def test_a_second_start_of_the_same_attempt_does_not_make_a_failed_gang_look_good(runner: Runner) -> None:
    """The pods are deleted and started again, as Kueue does, after a worker was done; the second time that worker fails."""
    process = subprocess.Popen(
        runner.command("two_starts_flow.py", "run", "--with", KUBERNETES),
        cwd=runner.home, env=runner.environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        assert eventually(lambda: "TwoStartsFlow" in done_markers(runner), 90), "worker 0 was never done"
        name = runner.kubectl("get", "jobsets", "-o", "name", "-l", "metaflow.org/flow=TwoStartsFlow").strip()
        runner.kubectl("patch", name, "--type=merge", "-p", '{"spec":{"suspend":true}}')
        assert eventually(
            lambda: (
                "Running" not in runner.kubectl("get", "pods", "-l", "metaflow.org/flow=TwoStartsFlow,metaflow.org/step=train")
            )
        )
        (runner.home / "second-start").touch()
        runner.kubectl("patch", name, "--type=merge", "-p", '{"spec":{"suspend":false}}')
        output, _ = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert process.returncode != 0, output
    assert not is_done(runner, "0", "TwoStartsFlow"), output
    (runner.home / "second-start").unlink()
    resumed = runner.run("two_starts_flow.py", "resume", "--with", KUBERNETES)
    assert "rank 0 runs" in resumed.output, str(resumed)
    assert resumed.code == 0, str(resumed)


def done_markers(runner: Runner) -> str:
    return "\n".join(
        str(path.relative_to(runner.home)) for path in runner.home.glob(".metaflow/*/*/train/*-worker-0/0.DONE.lock")
    )


def is_done(runner: Runner, attempt: str, flow: str = "GangFlow") -> bool:
    """Whether control's DONE marker is there."""
    found = runner.home.glob(f".metaflow/{flow}/*/train/*/{attempt}.DONE.lock")
    return any("-worker-" not in path.parent.name for path in found)


@pytest.mark.parametrize("way", ["Ctrl-C", "SIGTERM to the run", "SIGHUP to the run", "SIGTERM to the step process"])
def test_an_interrupted_run_leaves_nothing(runner: Runner, way: str) -> None:
    with running_gang(runner, "120") as (process, lines):
        if way == "Ctrl-C":
            os.killpg(process.pid, signal.SIGINT)
        elif way == "SIGTERM to the step process":
            os.kill(step_process(process.pid), signal.SIGTERM)
        else:
            process.send_signal(signal.SIGTERM if "TERM" in way else signal.SIGHUP)
    assert process.returncode != 0
    assert eventually(lambda: left_over(runner) == ""), "".join(lines)
    assert any("deleting JobSet" in line for line in lines), "".join(lines)


def step_process(group: int) -> int:
    listed = subprocess.run(
        ["pgrep", "-g", str(group), "-f", "kubernetes step train"], capture_output=True, text=True, check=True
    )
    return int(listed.stdout.split()[0])
