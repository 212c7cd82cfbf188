"""Who stands where, and who stands apart."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.stacks import (
    FINISHED,
    MOVING,
    SILENT,
    STILL,
    Frame,
    RankStack,
    alike,
    dumped,
    folded,
    odd_ones,
    places,
    rank_stack,
)


def rank(number: int, *calls: str, state: str = STILL) -> RankStack:
    """`calls` such as "train:10", the outermost first."""
    found = tuple(Frame("flow.py", int(line), name) for name, _, line in (call.partition(":") for call in calls))
    return RankStack(rank=number, state=state, stack=found)


@pytest.mark.parametrize(
    ("ranks", "expected", "odd"),
    [
        pytest.param([rank(0, "t:1", "sum:5"), rank(1, "t:1", "sum:5")], [((0, 1), 5)], (), id="all at one place"),
        pytest.param(
            [rank(0, "t:1", "recv:9"), rank(1, "t:2", "recv:9"), rank(2, "t:1", "recv:9")],
            [((1,), 2), ((0, 2), 1)],
            (1,),
            id="they part at the outermost call, though they end in the same",
        ),
        pytest.param(
            [rank(0, "t:1", "sum:5", "recv:9"), rank(1, "t:1", "sum:6", "recv:9"), rank(2, "t:2"), rank(3, "t:1", "sum:6")],
            [((2,), 2), ((0, 1, 3), 1)],
            (2,),
            id="what they do further in does not matter then",
        ),
        pytest.param([rank(0, "t:1"), rank(1, "t:2")], [((0,), 1), ((1,), 2)], (), id="of two nobody is the odd one"),
        pytest.param(
            [rank(0, "t:1", "sum:5"), rank(1, "t:1"), rank(2, "t:1", "sum:5")],
            [((1,), 1), ((0, 2), 5)],
            (1,),
            id="one is less deep",
        ),
        pytest.param(
            [rank(0, "t:1", "sum:5"), rank(1, "t:1", "sum:6"), rank(2, state=FINISHED), rank(3, "t:1", "sum:6")],
            [((2,), None), ((0, 1, 3), 1)],
            (2,),
            id="one has ended, the others wait within the same call",
        ),
        pytest.param(
            [rank(0, "t:1"), rank(1, state=SILENT), rank(2, "t:1")], [((1,), None), ((0, 2), 1)], (1,), id="no answer"
        ),
        pytest.param(
            [rank(0, "t:1"), rank(1, "t:3", state=SILENT), rank(2, "t:1")],
            [((1,), 3), ((0, 2), 1)],
            (1,),
            id="no answer, but a stack in the log",
        ),
        pytest.param([rank(0, "t:1"), rank(1, "t:1", state=MOVING)], [((0, 1), 1)], (), id="one moves at the same place"),
        pytest.param([rank(0, state=FINISHED)], [((0,), None)], (), id="alone and done"),
        pytest.param([], [], (), id="nobody"),
    ],
)
def test_places(ranks: list[RankStack], expected: list[tuple[tuple[int, ...], int | None]], odd: tuple[int, ...]) -> None:
    found = places(ranks)
    assert [(place.numbers, place.frame and place.frame.line) for place in found] == expected
    assert odd_ones(found) == odd


def test_ranks_with_the_same_stack_are_alike_whatever_is_known_of_the_code() -> None:
    with_code = RankStack(rank=2, state=STILL, stack=(Frame("flow.py", 1, "t", "x = 1"),))
    found = alike([rank(0, "t:1"), rank(1, "t:2"), with_code, rank(3, "t:1", state=MOVING)])
    assert [[one.rank for one in group] for group in found] == [[0, 2], [1], [3]]


@pytest.mark.parametrize(
    ("numbers", "expected"), [((3,), "rank 3"), ((0, 1), "ranks 0-1"), ((5, 1, 3, 2), "ranks 1-3, 5"), ((0, 2), "ranks 0, 2")]
)
def test_folded(numbers: tuple[int, ...], expected: str) -> None:
    assert folded(numbers) == expected


RECORD = {
    "state": "still", "since": "2026-12-01T12:00:00+00:00", "busy": 0.5, "progress": "epoch 3",
    "stack": [["flow.py", 7, "train", "x()"]], "threads": [{"thread": "loader", "stack": [["a.py", 1, "run", ""]]}],
}  # fmt: skip


def test_a_record_is_read() -> None:
    found = rank_stack(2, RECORD)
    assert (found.rank, found.state, found.busy, found.progress) == (2, "still", 0.5, "epoch 3")
    assert found.stack == (Frame("flow.py", 7, "train"),)
    assert found.stack[0].with_code == "flow.py:7 in train: x()"
    assert found.threads == (("loader", (Frame("a.py", 1, "run"),)),)


@pytest.mark.parametrize(
    "record",
    [
        None,
        {},
        {"state": "dancing"},
        {"state": "still", "since": 3, "busy": "x", "stack": "x", "threads": {}},
        {**RECORD, "stack": [["flow.py", 7], 3, None], "threads": [None, {}]},
    ],
)
def test_a_record_of_another_version_is_no_error(record: Any) -> None:
    assert rank_stack(2, record).stack == ()


def test_a_dump_by_faulthandler_s_timer_is_found_in_a_log() -> None:
    code = (
        "import faulthandler, threading, time\nthreading.Thread(target=time.sleep, args=(0.3,)).start()\n"
        "def _exec_step_function(): train()\ndef train(): time.sleep(0.3)\n"
        "faulthandler.dump_traceback_later(0.05)\n_exec_step_function()\nprint('later')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True)
    lines = ["before", "Timeout (0:00:01)!", "Thread 0x1 (most recent call first):", '  File "old.py", line 1 in old']
    assert dumped([*lines, *done.stdout.splitlines()]) == (Frame("<string>", 4, "train"),)


@pytest.mark.parametrize("lines", [[], ["nothing"], ["Timeout (0:00:01)!"], ["Timeout (0:00:01)!", "Thread", "x"]])
def test_a_log_without_a_dump(lines: list[str]) -> None:
    assert dumped(lines) == ()


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("/metaflow/flow.py", "flow.py"),
        ("/pods/x/work-0/metaflow/flow.py", "flow.py"),
        ("/usr/lib/python3/dist-packages/torch/nn.py", "torch/nn.py"),
        ("/usr/lib/python3.11/re.py", "/usr/lib/python3.11/re.py"),
    ],
)
def test_files_in_a_dump_are_called_as_by_a_rank_that_answers(file: str, expected: str) -> None:
    (frame,) = dumped(["Timeout (0:00:01)!", "Thread 0x1 (most recent call first):", f'  File "{file}", line 1 in f'])
    assert frame.file == expected
