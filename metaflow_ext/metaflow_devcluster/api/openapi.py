"""The OpenAPI v3 documents, one a group version, that kubectl reads to validate, patch and explain."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from ..resources import Resource, Resources
from .discovery import GIT_VERSION
from .schema import REF, Node, Schemas

Object = dict[str, Any]
_INFO = {"title": "Kubernetes", "version": GIT_VERSION}
_ACTIONS = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
_QUERY = ("dryRun", "fieldManager", "fieldValidation", "force", "pretty")


def path_of(group: str, version: str) -> str:
    """Where a group version is served, without the leading slash."""
    return f"apis/{group}/{version}" if group else f"api/{version}"


def index(resources: Resources, schemas: Schemas) -> Object:
    """The list of v3 documents; the hash changes with their content, so that clients may cache them."""
    paths = {}
    for group, version in resources.group_versions():
        path = path_of(group, version)
        digest = hashlib.sha256(document(resources, schemas, group, version)).hexdigest()[:32].upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(resources: Resources, schemas: Schemas, group: str, version: str) -> bytes:
    """The v3 document of a group version, with every schema it refers to."""
    paths: Object = {}
    roots: list[str] = []
    for resource in resources:
        if (resource.group, resource.version) == (group, version):
            node = schemas.root(group, version, resource.kind)
            name = node["$ref"][len(REF) :] if node else ""
            roots += [name] if name else []
            paths.update(_paths(resource, name))
    components = {"schemas": reachable(schemas, roots)}
    body = {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": components}
    return json.dumps(body, separators=(",", ":")).encode()


def reachable(schemas: Schemas, roots: list[str]) -> dict[str, Node]:
    """The named schemas and all that they refer to, sorted by name."""
    found: dict[str, Node] = {}
    wanted = list(roots)
    while wanted:
        name = wanted.pop()
        if name in found or name not in schemas.nodes:
            continue
        found[name] = schemas.nodes[name]
        wanted.extend(_references(found[name]))
    return dict(sorted(found.items()))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"][len(REF) :]
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _paths(resource: Resource, schema: str) -> Object:
    space = "/namespaces/{namespace}" if resource.namespaced else ""
    base = f"/{path_of(resource.group, resource.version)}{space}/{resource.plural}"
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    content = {"application/json": {"schema": {"$ref": REF + schema}}} if schema else {}
    body = {"content": {"*/*": content.get("application/json", {})}}
    responses = {"200": {"description": "OK", "content": content}}

    def operation(action: str, *, with_body: bool = False) -> Object:
        found: Object = {"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "responses": responses}
        found["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}} for name in _QUERY
        ]
        return {**found, "requestBody": body} if with_body else found

    collection = {"get": operation("list")}
    if "create" in resource.verbs:
        collection["post"] = operation("post", with_body=True)
    item = {verb: operation(action, with_body=verb in ("put", "patch")) for verb, action in _ACTIONS.items()}
    return {base: collection, f"{base}/{{name}}": item}
