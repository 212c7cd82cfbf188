"""Every error this package raises on purpose, so that callers can tell them apart without knowing the Kubernetes client.

    KubernetesExtError
    ├── InvalidSpec            what the user asked for can't be run; said before anything is submitted
    ├── ClusterError           the cluster answered with an error, or not at all
    │   ├── NotFound           404: the object, or the kind of object, isn't there
    │   ├── Conflict           409: exists already, or was changed meanwhile
    │   ├── Forbidden          401, 403 by RBAC: which verb on which resource
    │   ├── Rejected           400, 403 by a webhook or quota, 422: the cluster refuses this object
    │   └── Unavailable        no answer, 429, 5xx: worth another try
    └── TaskFailed             the workload failed, or did not start in time; carries the Failure

Only decorators/, cli/ and torchx_scheduler/ turn these into their host's exceptions.
"""

from __future__ import annotations

from typing import Any


class KubernetesExtError(Exception):
    """Base of all errors of this package. Its text says what, where and what to do."""


class InvalidSpec(KubernetesExtError):
    """The asked-for workload is not valid; nothing was submitted."""


class ClusterError(KubernetesExtError):
    """The API server refused a request or did not answer.

    Attributes: `status` the HTTP code or None (no answer), `reason` the Kubernetes Status reason or "",
    `body` the Status object or {}, `retry_after` seconds the server asked to wait, or None.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        body: dict[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.body = body or {}
        self.retry_after = retry_after


class NotFound(ClusterError):
    """404."""


class Conflict(ClusterError):
    """409."""


class Forbidden(ClusterError):
    """401, or 403 by authorization."""


class Rejected(ClusterError):
    """The object itself is refused: 400, 403 by an admission webhook or quota, 413, 422."""


class Unavailable(ClusterError):
    """No answer, or an answer that is worth another try: 408, 429, 5xx, connection errors."""


class TaskFailed(KubernetesExtError):
    """The workload failed. `failure` is a `status.model.Failure`."""

    def __init__(self, failure: Any) -> None:
        super().__init__(getattr(failure, "summary", str(failure)))
        self.failure = failure
