"""Lines of ranks in Metaflow's log format."""

import datetime
import io
import sys

import pytest
from metaflow.mflog.mflog import parse

from metaflow_extensions.kubernetes_ext.cli.task_output import TaskReporter, parse_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T22:00:01.123456789Z", datetime.datetime(2026, 11, 30, 22, 0, 1, 123456)),
        ("2026-11-30T22:00:01.1Z", datetime.datetime(2026, 11, 30, 22, 0, 1, 100000)),
        ("2026-11-30T22:00:01Z", datetime.datetime(2026, 11, 30, 22, 0, 1)),
    ],
)
def test_time_stamps_of_the_kubelet(text: str, expected: datetime.datetime) -> None:
    assert parse_time(text) == expected


def test_a_line_of_a_rank_keeps_its_time_and_is_not_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stderr", written)
    TaskReporter(echo=print, is_gang=True).log("worker", 2, "2026-11-30T22:00:01.5Z", "hé [x] ]")
    found = parse(written.buffer.getvalue().rstrip(b"\n"))  # type: ignore[attr-defined]
    assert found.msg.decode() == "[rank 2] hé [x] ]"
    assert found.utc_tstamp == datetime.datetime(2026, 11, 30, 22, 0, 1, 500000)
    assert not found.should_persist
