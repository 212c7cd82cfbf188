"""Whether a workload that failed starts again within its attempt: where the cluster took it away, and not for ever. Pure."""

from __future__ import annotations

from dataclasses import replace

from .model import Category, Failure, Phase, WorkloadStatus

# The cluster's own doing. What the user's program did is for @retry.
_DISRUPTIONS = frozenset({Category.EVICTED, Category.PREEMPTED, Category.NODE_LOST})


def starts_again(status: WorkloadStatus, restarts: int, most: int) -> bool:
    """`restarts` there were before; `most` are allowed."""
    failure = status.failure
    return status.phase is Phase.FAILED and failure is not None and _is_disruption(failure) and restarts < most


def _is_disruption(failure: Failure) -> bool:
    # A node that refuses a pod which the scheduler gave it (OutOfcpu, NodeAffinity) has changed in between.
    was_refused = failure.category is Category.UNSCHEDULABLE and failure.is_retryable and failure.rank is not None
    return failure.category in _DISRUPTIONS or was_refused


def after_restarts(status: WorkloadStatus, restarts: int, most: int) -> WorkloadStatus:
    """The last workload's status as that of the whole attempt."""
    failure = status.failure
    if failure is not None and restarts and _is_disruption(failure):
        times = "once" if restarts == 1 else f"{restarts} times"
        failure = replace(
            failure, resolution=f"{failure.resolution} It had started again {times} before (max_restarts={most})."
        )
    return replace(status, restarts=status.restarts + restarts, failure=failure)


def words(status: WorkloadStatus, restart: int, most: int) -> str:
    """The line that stands between the logs of two starts."""
    why = status.failure.summary if status.failure else ""
    who = "The task starts" if status.size == 1 else f"All {status.size} ranks start"
    return f"{why} {who} again (restart {restart} of {most})."
