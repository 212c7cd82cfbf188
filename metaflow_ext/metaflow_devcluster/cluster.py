"""The store behind admission: the way in for everything that creates objects, the API server and controllers alike.

A controller that creates a Job or a pod must be refused exactly as a client would be, because the refusals
(a bad template, an exceeded quota) are what its Events report.
"""

from __future__ import annotations

from typing import Any, Protocol

from .store import Store

Object = dict[str, Any]


class Admitter(Protocol):
    def admit_create(self, resource: str, obj: Object) -> tuple[Object, list[str]]:
        """The object with its defaults and the warnings for the client; ApiError when refused."""


class Cluster:
    """`create` admits and stores; everything else is done on `store` directly."""

    def __init__(self, store: Store, admission: Admitter) -> None:
        self.store = store
        self.admission = admission

    def create(self, resource: str, obj: Object) -> Object:
        """Create as a client would; raises ApiError with the server's text when it is refused."""
        admitted, _ = self.admission.admit_create(resource, obj)
        return self.store.create(resource, admitted)
