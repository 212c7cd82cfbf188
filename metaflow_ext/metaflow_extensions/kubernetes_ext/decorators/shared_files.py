"""Whether client and pods share the file system, as on the development cluster. The one place that knows the variable."""

from __future__ import annotations

import os

SHARED_FILES = "METAFLOW_KUBERNETES_SHARED_FILES"


def is_shared() -> bool:
    """Set by `metaflow-devcluster env` and `run`, and inherited by the pods there."""
    return os.environ.get(SHARED_FILES, "") not in ("", "0")
