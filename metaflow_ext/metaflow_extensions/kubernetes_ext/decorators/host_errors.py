"""The one place where our errors become Metaflow's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from metaflow.exception import MetaflowException


class KubernetesError(MetaflowException):
    headline = "Kubernetes error"


@contextmanager
def as_metaflow_error(where: str = "") -> Iterator[None]:
    """Raise what this package raises on purpose as one clear Metaflow error."""
    from ..errors import KubernetesExtError

    try:
        yield
    except KubernetesExtError as error:
        raise KubernetesError(f"{where}{error}") from error
