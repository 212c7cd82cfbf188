"""When a workload as a whole stands still, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.status.model import Stalled
from metaflow_extensions.kubernetes_ext.status.stacks import FINISHED, MOVING, SILENT, STILL, Frame, RankStack
from metaflow_extensions.kubernetes_ext.status.stalled import as_annotation, of_workload, stalled

NOW = datetime(2026, 12, 1, 12, 30, tzinfo=timezone.utc)
LIMIT = timedelta(minutes=10)
TRAIN, SUM, SAVE = (
    Frame("flow.py", 10, "train", "fit()"),
    Frame("ranks.py", 50, "sum", "recv()"),
    Frame("flow.py", 12, "train", "save()"),
)


def rank(number: int, *stack: Frame, state: str = STILL, minutes: float = 20, busy: float = 0.0) -> RankStack:
    return RankStack(rank=number, state=state, since=NOW - timedelta(minutes=minutes), busy=busy, stack=stack)


ALL_WAIT = [rank(number, TRAIN, SUM) for number in range(4)]


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        pytest.param(ALL_WAIT, True, id="all wait at one place"),
        pytest.param([*ALL_WAIT, rank(4, TRAIN, state=MOVING, minutes=0)], False, id="one gets on"),
        pytest.param([*ALL_WAIT, rank(4, TRAIN, minutes=6)], True, id="the last has stopped a little later"),
        pytest.param([*ALL_WAIT, rank(4, TRAIN, minutes=1)], False, id="the last has only just stopped"),
        pytest.param([rank(0, TRAIN, busy=1), rank(1, TRAIN, busy=1)], False, id="all compute at one place"),
        pytest.param([rank(0, TRAIN, busy=1), rank(1, SAVE, busy=1)], True, id="they spin at two places"),
        pytest.param([rank(0, TRAIN, busy=1), rank(1, TRAIN, busy=0)], True, id="one is idle"),
        pytest.param([*ALL_WAIT, rank(4, state=FINISHED)], True, id="one has ended long ago"),
        pytest.param([rank(0, state=FINISHED), rank(1, state=FINISHED)], False, id="all have ended: they only clean up"),
        pytest.param([*ALL_WAIT, RankStack(rank=4)], True, id="one does not answer, the others wait"),
        pytest.param([RankStack(rank=0), RankStack(rank=1)], False, id="nobody answers: the datastore may be away"),
        pytest.param([rank(0, TRAIN)], True, id="a task alone that is idle"),
        pytest.param([rank(0, TRAIN, busy=1)], False, id="a task alone that computes"),
        pytest.param([], False, id="nobody"),
    ],
)
def test_a_workload_stands_still_when_all_its_ranks_do(ranks: list[RankStack], expected: bool) -> None:
    assert (stalled(ranks, LIMIT, NOW) is not None) == expected


SINCE = "No rank has made progress since 12:10:00 UTC: "


@pytest.mark.parametrize(
    ("ranks", "summary", "lines"),
    [
        pytest.param(
            [rank(0, TRAIN, SUM), rank(1, TRAIN, SUM), rank(2, SAVE, busy=0.99), rank(3, TRAIN)],
            SINCE + "rank 2 stands at flow.py:12 in train, the other 3 stand at flow.py:10 in train.",
            [
                "rank 2 (99% of a core): flow.py:12 in train: save()",
                "ranks 0-1, 3 (idle): flow.py:10 in train: fit()",
                "  innermost: ranks.py:50 in sum: recv()",
            ],
            id="the odd one first",
        ),
        pytest.param(
            ALL_WAIT,
            SINCE + "all 4 stand at ranks.py:50 in sum.",
            ["ranks 0-3 (idle): ranks.py:50 in sum: recv()"],
            id="one place",
        ),
        pytest.param(
            [*ALL_WAIT[:3], rank(3, state=FINISHED)],
            SINCE + "rank 3 has ended the step's code, the other 3 stand at ranks.py:50 in sum.",
            ["rank 3 has ended the step's code", "ranks 0-2 (idle): ranks.py:50 in sum: recv()"],
            id="one has ended",
        ),
        pytest.param(
            [*ALL_WAIT[:2], RankStack(rank=2), RankStack(rank=3)],
            SINCE + "ranks 0-1 stand at ranks.py:50 in sum, ranks 2-3 do not answer.",
            ["ranks 0-1 (idle): ranks.py:50 in sum: recv()", "ranks 2-3 do not answer"],
            id="no majority",
        ),
        pytest.param(
            [*ALL_WAIT[:2], rank(2, SAVE, state=SILENT)],
            SINCE + "rank 2 stands at flow.py:12 in train, the other 2 stand at flow.py:10 in train.",
            [
                "rank 2 (no answer: C code keeps Python's lock): flow.py:12 in train: save()",
                "ranks 0-1 (idle): flow.py:10 in train: fit()",
                "  innermost: ranks.py:50 in sum: recv()",
            ],
            id="a stack from the log",
        ),
        pytest.param(
            [replace(rank(0, TRAIN), progress="epoch 3")],
            "The task has made no progress since 12:10:00 UTC: it stands at flow.py:10 in train.",
            ["rank 0 (idle): flow.py:10 in train: fit()", "  said last: epoch 3"],
            id="alone",
        ),
    ],
)
def test_what_is_said(ranks: list[RankStack], summary: str, lines: list[str]) -> None:
    found = stalled(ranks, LIMIT, NOW)
    assert found is not None
    assert (found.summary, [*found.lines]) == (summary, lines)


def test_of_many_places_few_are_told() -> None:
    found = stalled([rank(number, Frame("flow.py", number, "train")) for number in range(100)], LIMIT, NOW)
    assert found is not None
    assert found.summary.count(" stands at ") == 3
    assert "97 places more" in found.summary
    assert len(found.lines) <= 12


FOUND = Stalled(since=NOW, summary="No rank ...", lines=("rank 2: x",))


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (as_annotation(FOUND), FOUND),
        (as_annotation(None), None),
        ("{", None),
        ("[]", None),
        ("3", None),
        ('{"since": "2026-12-01T12:30:00Z", "lines": 3}', Stalled(since=NOW, summary="")),
    ],
)
def test_the_annotation_is_read_back(annotation: str | None, expected: Stalled | None) -> None:
    assert of_workload({"metadata": {"annotations": {labels.STALLED: annotation}}}) == expected
