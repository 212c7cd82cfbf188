"""Gangs that hang: who is told to stand where, on the development cluster and on the real Kubernetes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.contract.waiting import until
from tests.flows.conftest import FLOWS, GANG_OPTIONS, ON_BOTH, Runner
from tests.flows.test_failures import left_over

DIGITS = FLOWS.parent.parent / "examples" / "01-digits"
OPTIONS = f"{GANG_OPTIONS},stall_timeout=4,grace_period=2"


def flow_beside_the_example(home: Path) -> Path:
    folder = home / "digits"
    folder.mkdir()
    for path in (DIGITS / "model.py", DIGITS / "ranks.py", FLOWS / "hang_flow.py"):
        shutil.copy(path, folder)
    return folder / "hang_flow.py"


def line_of(flow: Path, code: str) -> int:
    return next(number for number, line in enumerate(flow.read_text().splitlines(), 1) if code in line)


@contextmanager
def hanging(runner: Runner, flow: Path, how: str, summary: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A run that has said by now that its gang hangs, and what it has printed since then, which is whole at the end.

    On a busy machine ranks may stand still for that long while they start, too; that is not what is meant.
    """
    words, environment = ["--with", f"kubernetes:{OPTIONS}"], runner.environment
    if runner.kind == "real":
        words, environment = [], {**environment, "TEST_GANG_ONLY": OPTIONS}
    process = subprocess.Popen(
        runner.command(str(flow), "run", *words, "--how", how),
        cwd=runner.home, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    before: list[str] = []
    lines: list[str] = []
    give_up = threading.Timer(300, process.kill)
    give_up.daemon = True
    give_up.start()
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            text = line.partition(")] ")[2] or line
            before.append(text)
            if lines or summary in text:
                lines.append(text)
            if lines and "Nothing is stopped" in text:
                give_up.cancel()
                yield process, lines
                break
        else:
            pytest.fail(f"it does not hang:\n{''.join(before)}")
        lines += process.stdout.readlines()


def command(runner: Runner, flow: Path, *words: str) -> str:
    done = subprocess.run(
        runner.command(str(flow), "kubernetes", *words),
        cwd=runner.home, env=runner.environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@ON_BOTH
def test_a_rank_that_has_left_out_a_sum_is_named_with_its_line(runner: Runner) -> None:
    flow = flow_beside_the_example(runner.home)
    mine, theirs = line_of(flow, "ranks.wait_for_end()"), line_of(flow, "train(ranks, ")
    summary = f"rank 2 stands at hang_flow.py:{mine} in train, the other 3 stand at hang_flow.py:{theirs} in train."
    with hanging(runner, flow, "skip", summary) as (process, lines):
        assert re.match(r"No rank has made progress since \d\d:\d\d:\d\d UTC: ", lines[0])
        assert lines[1] == f"|   rank 2 (idle): hang_flow.py:{mine} in train: ranks.wait_for_end()\n"
        assert re.fullmatch(r"\|     innermost: ranks\.py:\d+ in receive_exactly: piece = .*\n", lines[2])
        assert re.fullmatch(r"\|     said last: sum \d+\n", lines[3])
        assert lines[4].startswith(f"|   ranks 0-1, 3 (idle): hang_flow.py:{theirs} in train: train(ranks")
        assert len(lines) == 8, "few lines"
        (row,) = json.loads(command(runner, flow, "list", "--json"))
        assert (row["status"], bool(row["stalled_since"])) == ("Running", True)
        target = f"{row['run_id']}/train"
        assert lines[0] in command(runner, flow, "why", target)
        (found,) = json.loads(command(runner, flow, "stacks", target, "--json"))
        assert (found["odd_ones"], [rank["state"] for rank in found["ranks"]]) == ([2], ["still"] * 4)
        assert [rank["stack"][0]["line"] for rank in found["ranks"]] == [theirs, theirs, mine, theirs]
        told = command(runner, flow, "stacks", f"{target}/{row['task_id']}-worker-1")
        assert told.splitlines()[2].split()[0] == f"hang_flow.py:{mine}"
        command(runner, flow, "kill", target)
    assert process.returncode != 0
    until(lambda: left_over(runner, "HangFlow") == "", "nothing is left")


def test_a_rank_that_can_not_answer_is_told_from_its_log(runner: Runner) -> None:
    flow = flow_beside_the_example(runner.home)
    mine, theirs = line_of(flow, "re.match("), line_of(flow, "super().sum(mine)")
    summary = f"rank 2 stands at hang_flow.py:{mine} in sum, the other 3 stand at hang_flow.py:{theirs} in sum."
    with hanging(runner, flow, "lock", summary) as (process, lines):
        assert lines[1] == f"|   rank 2 (no answer: C code keeps Python's lock): hang_flow.py:{mine} in sum\n"
        command(runner, flow, "kill", json.loads(command(runner, flow, "list", "--json"))[0]["run_id"])
    assert process.returncode != 0
    until(lambda: left_over(runner, "HangFlow") == "", "nothing is left")
