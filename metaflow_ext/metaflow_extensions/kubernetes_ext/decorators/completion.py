"""How a task tells the script around it that it is complete: an exit code of 0 alone says nothing."""

from __future__ import annotations

COMPLETE = "METAFLOW_KUBERNETES_COMPLETE_FILE"  # names the file that a task makes when it is complete


def state_complete(path: str | None) -> None:
    """Of the task, when all that makes it good is written: without this an exit code of 0 says nothing."""
    if path:
        with open(path, "wb"):
            pass
