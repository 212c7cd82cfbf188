"""What core's runtime hears."""

import pytest

from metaflow_extensions.kubernetes_ext.cli import exit_codes
from metaflow_extensions.kubernetes_ext.errors import (
    Forbidden,
    InvalidSpec,
    KubernetesExtError,
    NotFound,
    Rejected,
    TaskFailed,
    Unavailable,
)
from metaflow_extensions.kubernetes_ext.status.model import Category, Failure

RETRY, NO_RETRY = 1, 202


def failure(is_retryable: bool) -> TaskFailed:
    return TaskFailed(Failure(category=Category.USER_ERROR, summary="s", resolution="r", is_retryable=is_retryable))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        pytest.param(failure(True), RETRY, id="a failure that another attempt may heal"),
        pytest.param(failure(False), NO_RETRY, id="a failure that none can heal"),
        pytest.param(InvalidSpec("x"), NO_RETRY, id="invalid"),
        pytest.param(Unavailable("x"), RETRY, id="no answer"),
        pytest.param(Rejected("x"), NO_RETRY, id="rejected"),
        pytest.param(Forbidden("x"), NO_RETRY, id="forbidden"),
        pytest.param(NotFound("x"), NO_RETRY, id="not found"),
    ],
)
def test_codes(error: KubernetesExtError, code: int) -> None:
    assert exit_codes.of_error(error, has_catch=False) == code
    assert exit_codes.of_error(error, has_catch=True) == RETRY, "202 would skip @catch"


def test_a_signal_is_told_as_a_shell_tells_it() -> None:
    assert exit_codes.of_signal(2) == 130
