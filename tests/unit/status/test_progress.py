"""When a line says that nothing has changed, and what it says."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from metaflow_extensions.kubernetes_ext.status.describe import duration
from metaflow_extensions.kubernetes_ext.status.model import Category, Phase, RankStatus, Waiting, WorkloadStatus
from metaflow_extensions.kubernetes_ext.status.progress import Progress, counts, line

START = datetime(2030, 1, 1, tzinfo=timezone.utc)
WAITING = {
    Phase.QUEUED: Waiting(category=Category.QUOTA, summary="Waits in queue team behind 3 others."),
    Phase.STARTING: Waiting(category=Category.UNKNOWN, summary="Worker 1 has been pulling its image app:1 for 5 min."),
}


def status(phase: Phase = Phase.RUNNING, *ranks: str, restarts: int = 0, ready: bool = True) -> WorkloadStatus:
    found = tuple(
        RankStatus(role="worker", rank=number, phase=text, ready=ready and text == "Running")
        for number, text in enumerate(ranks)
    )
    return WorkloadStatus(phase=phase, size=len(found), ranks=found, restarts=restarts, waiting=WAITING.get(phase))


def told(phase: Phase, minutes: int, news: tuple[int, ...] = ()) -> list[int]:
    """The minutes at which a line comes, looked at every ten seconds."""
    progress, found = Progress(), []
    for step in range(minutes * 6 + 1):
        progress, text = progress.seen(
            status(phase), START + timedelta(seconds=10 * step), has_news=step % 6 == 0 and step // 6 in news
        )
        found += [step // 6] if text else []
    return found


@pytest.mark.parametrize(
    ("phase", "news", "expected"),
    [
        pytest.param(Phase.RUNNING, (), [5, 15, 60, 120, 180], id="running"),
        pytest.param(Phase.STARTING, (), [5, 15, 60, 120, 180], id="starting"),
        pytest.param(Phase.QUEUED, (), [60, 120, 180], id="queued"),
        pytest.param(Phase.QUEUED, (12, 59), [120, 180], id="something else was told a moment ago"),
        pytest.param(Phase.SUCCEEDED, (), [], id="ended"),
    ],
)
def test_when(phase: Phase, news: tuple[int, ...], expected: list[int]) -> None:
    assert told(phase, 200, news) == expected


def test_another_phase_begins_anew() -> None:
    progress, _ = Progress().seen(status(Phase.QUEUED), START, has_news=True)
    progress, _ = progress.seen(status(Phase.RUNNING), START + timedelta(minutes=50), has_news=True)
    assert progress.seen(status(Phase.RUNNING), START + timedelta(minutes=54), has_news=False)[1] == ""
    assert progress.seen(status(Phase.RUNNING), START + timedelta(minutes=55), has_news=False)[1] != ""


def test_what() -> None:
    assert line(status(Phase.RUNNING, "Running", "Succeeded"), 900) == "Running for 15 min: 1 of 2 ranks run, 1 has succeeded."
    assert line(status(Phase.STARTING, "Running", "Pending"), 300) == (
        "Starting for 5 min: 1 of 2 ranks run. Worker 1 has been pulling its image app:1 for 5 min."
    )
    assert line(status(Phase.QUEUED), 3600) == "Queued for 1 h. Waits in queue team behind 3 others."


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(status(Phase.RUNNING, "Running"), "the task runs", id="a task"),
        pytest.param(status(Phase.RUNNING, *["Running"] * 4), "4 of 4 ranks run", id="a gang"),
        pytest.param(status(Phase.RUNNING, "Running", "Running", ready=False), "2 of 2 ranks run, 2 not ready", id="probes"),
        pytest.param(status(Phase.STARTING, "Pending", "Running", restarts=2), "1 of 2 ranks run, 2 restarts", id="restarts"),
    ],
)
def test_counts(found: WorkloadStatus, expected: str) -> None:
    assert counts(found) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(5.9, "5 s"), (60, "1 min"), (3600, "1 h"), (7500, "2 h 5 min")])
def test_durations(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected
