"""Processes that are killed, which no handler hears of: a step process leaves nothing; a run that is killed lets its gangs go on."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from tests.flows.conftest import Runner, hear_signals, running_gang
from tests.flows.test_failures import eventually, left_over, step_process


def supervisors(runner: Runner) -> list[int]:
    """Of this test's runs: they have its environment."""
    listed = subprocess.run(["pgrep", "-f", "kubernetes_ext.runtime.supervisor"], capture_output=True, text=True, check=False)
    mine = []
    for pid in map(int, listed.stdout.split()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                is_mine = runner.namespace.encode() in file.read()
        except OSError:
            continue
        mine += [pid] if is_mine else []
    return mine


def test_a_killed_step_process_leaves_nothing(runner: Runner) -> None:
    with running_gang(runner, "120") as (process, lines):
        assert len(supervisors(runner)) == 1
        os.kill(step_process(process.pid), signal.SIGKILL)
    assert process.returncode != 0
    assert eventually(lambda: left_over(runner) == ""), "".join(lines)
    assert any("deleted with its pods: its step process had been killed" in line for line in lines), "".join(lines)
    assert eventually(lambda: not supervisors(runner))


def test_a_sibling_that_fails_leaves_nothing_of_the_others(runner: Runner) -> None:
    done = runner.run("sibling_flow.py", "run")
    assert done.code != 0
    assert "the sibling fails" in done.output
    assert eventually(lambda: left_over(runner, "SiblingFlow", "slow") == ""), str(done)
    assert eventually(lambda: not supervisors(runner))


@pytest.mark.parametrize("whom", ["the run", "all of the client"])
def test_a_gang_goes_on_when_its_run_is_killed_and_resume_uses_its_results(runner: Runner, whom: str) -> None:
    with running_gang(runner, "5") as (process, lines):
        kill_client(runner, process, whom)
    assert "jobset" in left_over(runner)
    attached = runner.run("gang_flow.py", "kubernetes", "attach", run_id(lines), "--logs", "all")
    assert attached.code == 0, str(attached)
    assert "[rank 1] hello from rank 1 of 2" in attached.output
    assert "All 2 ranks have succeeded." in attached.output
    assert f"resume --origin-run-id {run_id(lines)}" in attached.output
    resumed = runner.gang("resume")
    assert resumed.code == 0, str(resumed)
    assert "hello from rank" not in resumed.output, str(resumed)


def test_attach_does_at_the_end_of_a_failed_gang_what_its_step_process_would_have_done(runner: Runner) -> None:
    words = ("--fail-rank", "1", "--fail-after", "10")
    with running_gang(runner, "60", *words) as (process, lines):
        kill_client(runner, process, "all of the client")
    detach_at_once(runner, run_id(lines))
    attached = runner.run("gang_flow.py", "kubernetes", "attach", f"{run_id(lines)}/train")
    assert attached.code == 1, str(attached)
    assert "(rank 1, pod " in attached.output
    assert "failed with exit code 3." in attached.output
    assert "about to fail" in attached.output
    assert eventually(lambda: left_over(runner) == "")
    told = runner.run("gang_flow.py", "kubernetes", "why", run_id(lines))
    assert "failed with exit code 3." in told.output, str(told)
    again = runner.run("gang_flow.py", "kubernetes", "attach", run_id(lines))
    assert again.code == 1
    assert "runs in the cluster" in again.output


def detach_at_once(runner: Runner, run: str) -> None:
    """Ctrl-C ends `attach`, and nothing else."""
    process = subprocess.Popen(
        runner.command("gang_flow.py", "kubernetes", "attach", run), cwd=runner.home, env=runner.environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=hear_signals,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        seen = next(line for line in process.stdout if "All 2 ranks run." in line)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130, seen + rest
    assert "Detached: " in rest
    assert "jobset" in left_over(runner)


def kill_client(runner: Runner, process: subprocess.Popen[str], whom: str) -> None:
    """`whom`: "the run" (its step processes then end by themselves) or "all of the client"."""
    step = step_process(process.pid)
    if whom == "the run":
        process.kill()
    else:
        for pid in supervisors(runner):
            os.kill(pid, signal.SIGKILL)
        os.killpg(process.pid, signal.SIGKILL)
    assert eventually(lambda: not os.path.exists(f"/proc/{step}")), "its step process detaches"
    assert eventually(lambda: not supervisors(runner))


def run_id(lines: list[str]) -> str:
    found = re.search(r"run-id (\d+)", "".join(lines))
    assert found
    return found[1]
