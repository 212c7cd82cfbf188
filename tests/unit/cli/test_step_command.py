"""How following a workload ends."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

from metaflow_extensions.kubernetes_ext.cli import failure_report
from metaflow_extensions.kubernetes_ext.cli.step_command import _end_of
from metaflow_extensions.kubernetes_ext.status.launch_limit import LaunchLimit
from metaflow_extensions.kubernetes_ext.status.model import Category, Observation, Phase, Waiting, WorkloadStatus

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)


def test_a_workload_that_waits_for_what_cannot_come_ends_as_failed_with_what_to_do() -> None:
    waiting = Waiting(category=Category.IMAGE_PULL, summary="No image.", detail="Correct its name.", is_hopeless=True)
    status = WorkloadStatus(phase=Phase.STARTING, size=1, waiting=waiting)
    running: Any = SimpleNamespace(status=status, observation=Observation(at=NOW))
    shown: list[WorkloadStatus] = []
    monitor: Any = SimpleNamespace(show=shown.append)

    ended = _end_of(running, monitor, LaunchLimit(), lambda status: None)

    assert shown == [status]
    assert ended.phase is Phase.FAILED
    assert ended.failure is not None
    assert (ended.failure.category, ended.failure.is_retryable, ended.failure.at) == (Category.IMAGE_PULL, False, NOW)
    assert failure_report.lines(ended) == ["No image.", "Correct its name."]
