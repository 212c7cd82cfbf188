"""OpenAPI v2, as JSON and as the protobuf that kubectl before 1.28 insists on.

The messages are those of gnostic's OpenAPIv2.proto; only what kubectl reads is written: the definitions, and for
each kind a PATCH operation whose parameters say that dry runs and field validation are supported.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..resources import Resource, Resources
from .discovery import GIT_VERSION
from .openapi import path_of, reachable
from .schema import REF, Node, Schemas

Object = dict[str, Any]
MEDIA = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED_FOR = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", MEDIA)  # the older one is no valid type
_V2_REF = "#/definitions/"
_QUERY = ("dryRun", "fieldValidation", "fieldManager")
_KIND = "x-kubernetes-group-version-kind"


def _definitions(resources: Resources, schemas: Schemas) -> dict[str, Node]:
    roots = [n["$ref"][len(REF) :] for r in resources if (n := schemas.root(r.group, r.version, r.kind)) is not None]
    return reachable(schemas, roots)


def as_json(resources: Resources, schemas: Schemas) -> bytes:
    text = json.dumps(_definitions(resources, schemas), separators=(",", ":")).replace(REF, _V2_REF)
    info = {"title": "Kubernetes", "version": GIT_VERSION}
    head = json.dumps({"swagger": "2.0", "info": info, "paths": {}}, separators=(",", ":"))
    return f'{head[:-1]},"definitions":{text}}}'.encode()


def as_protobuf(resources: Resources, schemas: Schemas) -> bytes:
    """A gnostic Document."""
    info = _text(1, "Kubernetes") + _text(2, GIT_VERSION)
    paths = b"".join(_part(2, _named(_path(r), _part(8, _operation(r)))) for r in resources)
    named = (_part(1, _named(name, _schema(node))) for name, node in _definitions(resources, schemas).items())
    return _text(1, "2.0") + _part(2, info) + _part(8, paths) + _part(9, b"".join(named))


def _path(resource: Resource) -> str:
    space = "/namespaces/{namespace}" if resource.namespaced else ""
    return f"/{path_of(resource.group, resource.version)}{space}/{resource.plural}/{{name}}"


def _operation(resource: Resource) -> bytes:
    kind = {"group": resource.group, "kind": resource.kind, "version": resource.version}
    return b"".join(_part(8, _query_parameter(name)) for name in _QUERY) + _part(13, _extension(_KIND, kind))


def _query_parameter(name: str) -> bytes:
    described = _text(2, "query") + _text(4, name) + _text(6, "string")
    return _part(1, _part(2, _part(3, described)))


def _schema(node: Node) -> bytes:
    found = b""
    if "$ref" in node:
        found += _text(1, node["$ref"].replace(REF, _V2_REF))
    kind, form = node.get("type"), node.get("format", "")
    if node.get("oneOf"):
        kind = "string"
    if form:
        found += _text(2, form)
    found += b"".join(_text(19, name) for name in node.get("required", ()))
    extra = node.get("additionalProperties")
    if isinstance(extra, dict):
        found += _part(21, _part(1, _schema(extra)))
    if kind:
        found += _part(22, _text(1, kind))
    if "items" in node:
        found += _part(23, _part(1, _schema(node["items"])))
    if node.get("properties"):
        found += _part(25, _each(node["properties"].items()))
    extensions = (item for item in node.items() if item[0].startswith("x-kubernetes-"))
    return found + b"".join(_part(31, _extension(name, value)) for name, value in extensions)


def _each(items: Iterable[tuple[str, Node]]) -> bytes:
    return b"".join(_part(1, _named(name, _schema(node))) for name, node in items)


def _extension(name: str, value: Any) -> bytes:
    return _named(name, _text(2, json.dumps(value)))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _part(2, value)


def _text(number: int, value: str) -> bytes:
    return _part(number, value.encode())


def _part(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
