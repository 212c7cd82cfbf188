"""What is sent for each verb: pure, so that paths, queries and bodies can be read and tested without a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from .protocol import PODS, Resource

MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, kw_only=True)
class Request:
    """`verb`, `resource`, `namespace` and `name` are for messages; what goes over the wire is the rest."""

    verb: str  # as RBAC calls it
    resource: Resource
    namespace: str = ""
    name: str = ""
    method: str = "GET"
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    content_type: str = "application/json"

    @property
    def target(self) -> str:
        """Path and query; empty values are left out."""
        query = urlencode({key: value for key, value in self.query.items() if value != ""})
        return f"{self.path}?{query}" if query else self.path

    @property
    def payload(self) -> bytes | None:
        return None if self.body is None else json.dumps(self.body).encode()


def path(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    """/api/v1/namespaces/NS/pods/NAME/log or /apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME. Namespace "" is all of them."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    parts = [root]
    if resource.namespaced and namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [resource.plural, quote(name, safe=""), subresource]
    return "/".join(filter(None, parts))


def create(resource: Resource, namespace: str, body: Mapping[str, Any], dry_run: bool, strict: bool) -> Request:
    return Request(
        verb="create",
        resource=resource,
        namespace=namespace,
        name=str((body.get("metadata") or {}).get("name") or ""),
        method="POST",
        path=path(resource, namespace),
        query={"dryRun": "All" if dry_run else "", "fieldValidation": "Strict" if strict else ""},
        body=body,
    )


def get(resource: Resource, namespace: str, name: str) -> Request:
    return Request(verb="get", resource=resource, namespace=namespace, name=name, path=path(resource, namespace, name))


def listing(resource: Resource, namespace: str, query: Mapping[str, str]) -> Request:
    return Request(verb="list", resource=resource, namespace=namespace, path=path(resource, namespace), query=query)


def delete(resource: Resource, namespace: str, name: str, propagation: str, uid: str) -> Request:
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
    if uid:
        options["preconditions"] = {"uid": uid}
    return Request(
        verb="delete",
        resource=resource,
        namespace=namespace,
        name=name,
        method="DELETE",
        path=path(resource, namespace, name),
        body=options,
    )


def patch(resource: Resource, namespace: str, name: str, body: Mapping[str, Any]) -> Request:
    return Request(
        verb="patch",
        resource=resource,
        namespace=namespace,
        name=name,
        method="PATCH",
        path=path(resource, namespace, name),
        body=body,
        content_type=MERGE_PATCH,
    )


def watch(resource: Resource, namespace: str, query: Mapping[str, str], resource_version: str, seconds: int) -> Request:
    return Request(
        verb="watch",
        resource=resource,
        namespace=namespace,
        path=path(resource, namespace),
        query={
            **query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        },
    )


def logs(namespace: str, pod: str, container: str, follow: bool, since: str, tail: int | None) -> Request:
    return Request(
        verb="get",
        resource=Resource("", "v1", "pods/log", "log"),
        namespace=namespace,
        name=pod,
        path=path(PODS, namespace, pod, "log"),
        query={
            "container": container,
            "follow": "true" if follow else "",
            "sinceTime": since,
            "tailLines": "" if tail is None else str(tail),
            "timestamps": "true",
        },
    )


def discovery(group: str, version: str = "") -> Request:
    """The resources of a group's version, or the versions of a group."""
    root = f"/apis/{group}" if group else "/api"
    return Request(
        verb="get",
        resource=Resource(group, version, "", "API group", namespaced=False),
        path=f"{root}/{version}" if version else root,
    )
