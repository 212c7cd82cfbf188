"""The run's side of its supervisor: started once a run, told of its end, whatever end that is."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..runtime.supervision import ADDRESS, Supervision

_supervision: Supervision | None = None


def start() -> None:
    """Without one, nobody cleans up after a step process that is killed; no reason not to run."""
    global _supervision
    try:
        _supervision = Supervision()
    except OSError:
        return
    os.environ[ADDRESS] = _supervision.address  # inherited by the step processes


def finish(tell: Callable[[str], None]) -> None:
    """Delete what step processes left behind. Later calls do nothing."""
    global _supervision
    if _supervision is not None:
        supervision, _supervision = _supervision, None
        os.environ.pop(ADDRESS, None)
        supervision.finish(tell)
