"""@catch's own exception, and those of its subclasses, say why the last attempt on Kubernetes failed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import metaflow
import pytest
from metaflow.plugins import catch_decorator
from metaflow.plugins.catch_decorator import CatchDecorator

from metaflow_extensions.kubernetes_ext.decorators import caught

FAILURE = {
    "category": "user_error", "summary": "Worker 0 (rank 1) failed with exit code 3.", "last_lines": ["a", "b"],
    "resolution": "Correct it.",
}  # fmt: skip
TEXT = "Worker 0 (rank 1) failed with exit code 3.\nCategory user_error.\n| a\n| b\nCorrect it."


def raised(decorator: type[CatchDecorator]) -> str:
    fallback = decorator(attributes={}).task_decorate(lambda: None, None, None, 2, 1, None)
    with pytest.raises(metaflow.exception.MetaflowException) as error:
        fallback()
    return str(error.value)


@pytest.mark.parametrize(
    ("metadata", "is_told"),
    [
        pytest.param({1: {"kubernetes-failure": json.dumps(FAILURE)}}, True, id="of the last attempt"),
        pytest.param({0: {"kubernetes-failure": json.dumps(FAILURE)}, 1: {}}, False, id="of an earlier attempt"),
        pytest.param({1: {"kubernetes-failure": "no JSON"}}, False, id="unreadable"),
        pytest.param({}, False, id="none"),
    ],
)
def test_the_exception_of_the_fallback(monkeypatch: pytest.MonkeyPatch, metadata: dict[int, Any], is_told: bool) -> None:
    class Own(CatchDecorator):
        pass

    monkeypatch.setattr(catch_decorator, "FailureHandledByCatch", catch_decorator.FailureHandledByCatch)
    monkeypatch.setattr(
        metaflow, "Task", lambda pathspec, attempt, _namespace_check: SimpleNamespace(metadata_dict=metadata[attempt])
    )
    caught.explain("Flow/1/train/2", 2)
    assert (raised(CatchDecorator) == TEXT) is is_told
    assert (raised(Own) == TEXT) is is_told
