"""Where the API server keeps the kinds of objects we run, and how a user would name them to kubectl."""

from __future__ import annotations

from ..backends.base import Backend
from ..cluster.protocol import Resource


def resource_of(backend: Backend) -> Resource:
    """The resource of the backend's kind of object."""
    group, _, version = backend.api_version.rpartition("/")
    return Resource(group, version, backend.plural, backend.kind)


def kubectl_delete(resource: Resource, namespace: str, name: str) -> str:
    """The command that does by hand what we could not."""
    plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    return f"kubectl delete {plural} {name} --namespace {namespace}"
