"""The kinds of workload by their names in settings, options and stored records."""

from __future__ import annotations

from ..errors import InvalidSpec
from .appwrapper import AppWrapperBackend
from .base import Backend
from .job import JobBackend
from .jobset import JobSetBackend

BACKENDS: dict[str, Backend] = {"appwrapper": AppWrapperBackend(), "job": JobBackend(), "jobset": JobSetBackend()}


def backend(name: str) -> Backend:
    """The backend called `name`, as the API's defaults have it. InvalidSpec for an unknown name."""
    try:
        return BACKENDS[name]
    except KeyError:
        raise InvalidSpec(f"There is no kind of workload {name!r}; there are {', '.join(sorted(BACKENDS))}.") from None


def backend_of(api_version: str, kind: str) -> Backend | None:
    """The backend that reads an object of this kind, whatever its API version's number; None where there is none."""
    group = api_version.rpartition("/")[0]
    for candidate in BACKENDS.values():
        if candidate.kind == kind and candidate.api_version.rpartition("/")[0] == group:
            return candidate
    return None
