"""What a step process tells core's runtime, which hears nothing but its exit code."""

from __future__ import annotations

from metaflow.exception import METAFLOW_EXIT_DISALLOW_RETRY as DISALLOW_RETRY

from ..errors import ClusterError, InvalidSpec, KubernetesExtError, TaskFailed, Unavailable

FAILED = 1


def of_error(error: KubernetesExtError, has_catch: bool) -> int:
    """1 where another attempt may help, else 202: core then doesn't retry, and also skips @catch, so not where there is one."""
    if has_catch or is_retryable(error):
        return FAILED
    return int(DISALLOW_RETRY)


def is_retryable(error: KubernetesExtError) -> bool:
    if isinstance(error, TaskFailed):
        return bool(error.failure.is_retryable)
    if isinstance(error, InvalidSpec):
        return False
    return isinstance(error, Unavailable) or not isinstance(error, ClusterError)


def of_signal(number: int) -> int:
    """As a shell gives it for a process that a signal ended."""
    return 128 + number
