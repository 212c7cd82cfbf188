"""The one place where our errors become Metaflow's."""

from contextlib import contextmanager
from typing import Iterator

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
        raise KubernetesError("%s%s" % (where, error)) from error
