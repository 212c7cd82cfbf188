"""How a workload ended that nobody follows any more: its run took it back, or it could not be submitted or followed at all."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from .model import Category, Failure, Phase, WorkloadStatus
from .waiting import is_running


def interrupted(status: WorkloadStatus, kind: str, signal_name: str, at: datetime) -> WorkloadStatus:
    """The last status of a workload that was deleted since its run was interrupted. One that had failed by itself keeps that."""
    if status.is_terminal or status.failure is not None:
        return status
    running = sum(1 for rank in status.ranks if is_running(rank))
    if status.waiting is not None and not status.waiting.is_ordinary:
        when = f"while it waited: {status.waiting.summary}"
    elif status.size > 1:
        when = f"while {running} of {status.size} ranks ran."
    else:
        when = "while it ran." if running else f"while it was {str(status.phase).lower()}."
    failure = Failure(
        category=Category.GONE,
        summary=f"The run was interrupted ({signal_name}), and the {kind} deleted {when}",
        resolution="`resume` the run, or run it again.",
        reason="Interrupted",
        at=at,
    )
    return replace(status, phase=Phase.GONE, reason="Interrupted", waiting=None, failure=failure)


def not_followed(error: str, *, is_refused: bool, is_retryable: bool, size: int, at: datetime) -> WorkloadStatus:
    """Of a workload that the cluster refused when it was submitted, or that it did not let us follow. The error says what to do."""
    category = Category.UNKNOWN
    if is_refused:
        category = Category.QUOTA if "exceeded quota" in error or "failed quota" in error else Category.REJECTED
    failure = Failure(category=category, summary=error, resolution="", is_retryable=is_retryable, at=at)
    return WorkloadStatus(phase=Phase.FAILED, size=size, failure=failure)
