"""What @catch keeps of a step that failed on Kubernetes: why, and not only that it did.

After the last attempt core runs one more on the client, whose step is a function of @catch that raises FailureHandledByCatch with a
text of its own; that exception goes into the user's variable. Here it gets our text, for @catch and all its subclasses.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from metaflow.exception import MetaflowException
from metaflow.plugins import catch_decorator

from .task_metadata import FAILURE


def explain(pathspec: str, attempts: int) -> None:
    """`pathspec` is flow/run/step/task, of which `attempts` have failed. Where nothing is known of the last one (its step process
    was killed, say), core's text stays."""
    failure = _failure_of(pathspec, attempts - 1)
    if failure is not None:
        text = words(failure)

        class StepFailedOnKubernetes(catch_decorator.FailureHandledByCatch):
            def __init__(self, retry_count: int) -> None:
                MetaflowException.__init__(self, text)

        catch_decorator.FailureHandledByCatch = StepFailedOnKubernetes


def words(failure: Mapping[str, Any]) -> str:
    """Of a failure as status.record writes it."""
    lines = [f"| {line}" for line in failure.get("last_lines") or ()]
    category = f"Category {failure.get('category', 'unknown')}."
    return "\n".join([str(failure.get("summary", "")), category, *lines, str(failure.get("resolution", ""))]).strip()


def _failure_of(pathspec: str, attempt: int) -> Mapping[str, Any] | None:
    from metaflow import Task

    try:
        failure = json.loads(Task(pathspec, attempt=attempt, _namespace_check=False).metadata_dict[FAILURE])
    except Exception:  # noqa: BLE001  (of any metadata service: it must not hide that the step has failed)
        return None
    return failure if isinstance(failure, dict) else None
