"""Which kind of workload a step is: by its size, the attribute `backend`, and the APIs that are configured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..backends.appwrapper import AppWrapperBackend
from ..backends.base import Backend
from ..backends.job import JobBackend
from ..backends.jobset import JobSetBackend
from ..errors import InvalidSpec
from .settings import Settings


def backend_of(num_parallel: int | None, options: Mapping[str, Any], settings: Settings) -> Backend:
    """A gang is a JobSet, also a gang of one; a plain step a Job, or what it asks for. InvalidSpec where it can't be that."""
    jobset = JobSetBackend(group=settings.jobset_group, version=settings.jobset_version)
    usual: Backend = JobBackend() if num_parallel is None else jobset
    wanted = options.get("backend") or None
    if options.get("fault_tolerance") and wanted != "appwrapper":
        raise InvalidSpec(
            "fault_tolerance is an AppWrapper's: it needs backend='appwrapper'. Others have @retry and max_restarts."
        )
    if wanted == "job" and num_parallel is not None:
        raise InvalidSpec("A @parallel step is a JobSet, or an AppWrapper around one: backend='job' is for other steps.")
    chosen = {None: usual, "job": usual, "jobset": jobset, "appwrapper": AppWrapperBackend(wrapped=usual)}.get(wanted)
    if chosen is None:
        raise InvalidSpec(f"backend is appwrapper, job or jobset, not {wanted!r}.")
    return chosen
