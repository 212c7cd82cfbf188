"""Lines of ranks in Metaflow's log format."""

import datetime
import io
import os
import select
import sys
import threading

import pytest
from metaflow.mflog.mflog import parse

from metaflow_extensions.kubernetes_ext.cli.task_output import TaskReporter, parse_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30T22:00:01.123456789Z", datetime.datetime(2026, 11, 30, 22, 0, 1, 123456)),
        ("2026-11-30T22:00:01.1Z", datetime.datetime(2026, 11, 30, 22, 0, 1, 100000)),
        ("2026-11-30T22:00:01Z", datetime.datetime(2026, 11, 30, 22, 0, 1)),
        ("2026-12-01T00:00:01.25+02:00", datetime.datetime(2026, 11, 30, 22, 0, 1, 250000)),
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


def test_no_line_of_a_burst_stays_behind_in_core_s_buffer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Core's runtime reads one line, from a buffer, each time that its pipe is readable."""
    out, into = os.pipe()
    seen: list[bytes] = []

    def read_as_core_does() -> None:
        with os.fdopen(out, "rb") as file:
            while len(seen) < 4 and select.select([out], [], [], 5)[0]:
                seen.append(file.readline())

    core = threading.Thread(target=read_as_core_does)
    core.start()
    with os.fdopen(into, "w", encoding="utf-8") as written:
        monkeypatch.setattr(sys, "stderr", written)
        reporter = TaskReporter(echo=lambda text, err: print(text, file=written, flush=True), is_gang=True)
        reporter.line("a\nb")
        reporter.log("worker", 2, "", "c")
        reporter.line("d")
        core.join()
    assert [line.strip()[-1:] for line in seen] == [b"a", b"b", b"c", b"d"]
