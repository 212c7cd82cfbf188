"""Replaying recorded traces gives the verdicts that the tests of status/ ask for, as JSON and as a text."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext import replay
from tests.unit.status.test_traces import TRACES, TRUTH

ORDER = {"Pending", "Queued", "Starting", "Running", "Succeeded", "Failed", "Gone"}


def path(trace: str) -> Path:
    return TRACES / f"{trace}.s2.jsonl.gz"


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert replay.main([*arguments, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("trace", list(TRUTH))
def test_json_has_the_end_the_failure_and_the_phases(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    truth = TRUTH[trace]
    found = as_json(capsys, str(path(trace)))
    assert set(found) == {"phase", "failure", "phases"}
    assert found["phase"] == truth.end
    failure = found["failure"]
    if not truth.category:
        assert failure is None
    else:
        assert isinstance(failure, dict)
        assert set(failure) == {"category", "role", "rank", "pod", "exit_code", "reason"}
        told = (failure["category"], failure["role"], failure["rank"], failure["exit_code"], failure["reason"])
        assert told == (truth.category, truth.role, truth.rank, truth.exit_code, truth.reason)
        assert failure["pod"].rpartition("-")[0] == truth.pod
    phases = found["phases"]
    assert isinstance(phases, list)
    assert [t for t, _ in phases] == sorted(t for t, _ in phases)
    assert {phase for _, phase in phases} <= ORDER
    assert phases[-1][1] == truth.end


@pytest.mark.parametrize(
    ("trace", "phases"),
    [
        pytest.param("aw_success", ["Pending", "Starting", "Running", "Succeeded"], id="success"),
        pytest.param(
            "aw_suspended",
            ["Queued", "Pending", "Starting", "Running", "Queued", "Starting", "Running", "Succeeded"],
            id="suspended at first and while it runs",
        ),
        pytest.param("aw_deleted", ["Pending", "Starting", "Running", "Gone"], id="deleted"),
        pytest.param("kueue_appwrapper", ["Queued", "Pending", "Starting", "Running", "Succeeded"], id="queued by Kueue"),
    ],
)
def test_an_appwrapper_is_judged_as_the_outermost_object(
    trace: str, phases: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(capsys, str(path(trace)))
    assert [phase for _, phase in found["phases"]] == phases  # type: ignore[attr-defined]


def test_without_json_it_tells_what_the_user_would_have_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.main([str(path("worker_fail"))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["0.0", "s", "Submitted."]
    assert any("All 4 ranks run." in line for line in lines)
    report = lines[lines.index("") + 1 :]
    assert report[0].startswith("Worker 2 (rank 3, pod g-worker-0-2-")
    assert "exit code 3" in report[0]
    assert any("rank 0 (control)" in line for line in report)


def test_a_plain_file_and_another_workload_of_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "trace.jsonl"
    plain.write_bytes(gzip.decompress(path("kueue_appwrapper").read_bytes()))
    found = as_json(capsys, str(plain), "--workload", "b")
    assert found["phase"] == "Succeeded"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(None, "No such file", id="no such file"),
        pytest.param("", "There is no AppWrapper, JobSet, Job in this trace.", id="an empty file"),
        pytest.param("no JSON\n[1]\n", "There is no AppWrapper", id="not a trace"),
    ],
)
def test_what_can_not_be_replayed_is_said(
    text: str | None, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.jsonl"
    if text is not None:
        file.write_text(text)
    assert replay.main([str(file)]) == 2
    assert words in capsys.readouterr().err


def test_a_recording_that_is_cut_off_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "trace.jsonl.gz"
    file.write_bytes(gzip.compress(b"x" * 1000)[:-12])
    assert replay.main([str(file)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
