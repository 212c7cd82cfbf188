"""What the served kinds consist of: pruning of unknown fields, and typed decoding with Go's error texts.

The schemas are OpenAPI nodes in `data/schemas.json`. Built-in kinds are decoded as Go structs would be (wrong
types are refused, numbers become quantities, nulls vanish); custom kinds are only pruned here.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import quantities

Node = dict[str, Any]
REF = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_GO_TYPES = {"string": "string", "boolean": "bool", "number": "float64"}


class Undecodable(ValueError):
    """The text Go's decoder gives for a value of the wrong type."""


@functools.cache
def built_in_schemas() -> dict[str, Node]:
    found: dict[str, Node] = json.loads((Path(__file__).parent / "data" / "schemas.json").read_text())
    return found


class Schemas:
    """All schemas by their OpenAPI name, and the root one of each kind; CRDs add theirs."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = dict(built_in_schemas())
        self._roots: dict[tuple[str, str, str], str] = {}
        for name, node in self.nodes.items():
            for kind in node.get("x-kubernetes-group-version-kind", ()):
                self._roots[kind["group"], kind["version"], kind["kind"]] = name

    def root(self, group: str, version: str, kind: str) -> Node | None:
        name = self._roots.get((group, version, kind))
        return {"$ref": REF + name} if name else None

    def add(self, group: str, version: str, kind: str, node: Node) -> None:
        """Register a custom kind; its metadata is always ObjectMeta."""
        properties = {**node.get("properties", {}), "metadata": {"$ref": f"{REF}{META}ObjectMeta"}}
        properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, **properties}
        reversed_group = ".".join(reversed(group.split(".")))
        name = f"{reversed_group}.{version}.{kind}"
        identity = {"group": group, "version": version, "kind": kind}
        self.nodes[name] = {**node, "properties": properties, "x-kubernetes-group-version-kind": [identity]}
        self._roots[group, version, kind] = name

    def alias(self, group: str, version: str, kind: str, existing: tuple[str, str, str]) -> None:
        """Serve a known kind under another group or version too."""
        if (group, version, kind) not in self._roots and existing in self._roots:
            self._roots[group, version, kind] = self._roots[existing]

    def discard(self, group: str, version: str, kind: str) -> None:
        name = self._roots.pop((group, version, kind), None)
        if name:
            del self.nodes[name]

    def resolve(self, node: Node) -> Node:
        reference = node.get("$ref")
        return self.nodes[reference[len(REF) :]] if reference else node


def properties_of(node: Node) -> Mapping[str, Node] | None:
    """The declared fields; None where any field may stand (free-form objects, preserved unknown fields)."""
    if node.get("x-kubernetes-preserve-unknown-fields") and "properties" not in node:
        return None
    found: Mapping[str, Node] | None = node.get("properties")
    return found


def prune(schemas: Schemas, node: Node, value: Any, path: str = "") -> tuple[Any, list[str]]:
    """The value without fields the schema does not know, and the paths of those fields in order of finding."""
    unknown: list[str] = []
    return _prune(schemas, node, value, path, unknown), unknown


def _prune(schemas: Schemas, node: Node, value: Any, path: str, unknown: list[str]) -> Any:
    node = schemas.resolve(node)
    if isinstance(value, list):
        items = node.get("items")
        if items is None:
            return value
        return [_prune(schemas, items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties = properties_of(node)
    extra = node.get("additionalProperties")
    if properties is None:
        if isinstance(extra, dict):
            return {k: _prune(schemas, extra, v, _child(path, k), unknown) for k, v in value.items()}
        return value
    keeps_all = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    pruned = {}
    for key, item in value.items():
        if key in properties:
            pruned[key] = _prune(schemas, properties[key], item, _child(path, key), unknown)
        elif keeps_all:
            pruned[key] = item
        else:
            unknown.append(_child(path, key))
    return pruned


def _child(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def typed(schemas: Schemas, node: Node, value: Any) -> Any:
    """The value as a Go struct holds it; Undecodable when a type does not fit."""
    return _typed(schemas, node, value, "", "")


def _typed(schemas: Schemas, node: Node, value: Any, path: str, struct: str) -> Any:
    name = node["$ref"][len(REF) :] if "$ref" in node else ""
    field = node if not name else schemas.nodes[name]
    if name == _QUANTITY:
        return _quantity(value)
    if field.get("format") == "int-or-string":
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise _mismatch(value, node, path, struct, "intstr.IntOrString")
        return value
    kind = field.get("type")
    if kind == "object" or "properties" in field:
        return _typed_object(schemas, node, field, name, value, path, struct)
    if kind == "array":
        return _typed_array(schemas, field, value, path, struct)
    if kind == "string":
        return _typed_string(field, name, value, path, struct)
    if kind == "boolean" and not isinstance(value, bool):
        raise _mismatch(value, node, path, struct)
    if kind == "integer" and (isinstance(value, bool) or not isinstance(value, int)):
        if isinstance(value, float) and value.is_integer():
            return int(value)
        raise _mismatch(value, node, path, struct)
    return value


def _typed_object(schemas: Schemas, node: Node, field: Node, name: str, value: Any, path: str, struct: str) -> Any:
    properties, extra = field.get("properties"), field.get("additionalProperties")
    if properties is None and not isinstance(extra, dict):
        return value
    if not isinstance(value, dict):
        raise _mismatch(value, node, path, struct)
    if properties is None:
        values: Node = extra or {}
        empty = "" if values.get("type") == "string" else None
        found = {k: empty if v is None else _typed(schemas, values, v, path, struct) for k, v in value.items()}
        return {k: v for k, v in found.items() if v is not None}
    inner = name.rpartition(".")[2] or struct
    return {
        key: _typed(schemas, properties[key], item, _child(path, key), inner) if key in properties else item
        for key, item in value.items()
        if item is not None
    }


def _typed_array(schemas: Schemas, field: Node, value: Any, path: str, struct: str) -> Any:
    if not isinstance(value, list):
        raise _mismatch(value, field, path, struct)
    items = field.get("items") or {}
    return [_typed(schemas, items, item, path, struct) for item in value if item is not None]


def _typed_string(field: Node, name: str, value: Any, path: str, struct: str) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, {"$ref": REF + name} if name else field, path, struct)
    if field.get("format") == "byte":
        try:
            base64.b64decode(value, validate=True)
        except binascii.Error as error:
            bad = next((i for i, c in enumerate(value) if not (c.isalnum() or c in "+/=")), len(value))
            raise Undecodable(f"illegal base64 data at input byte {bad}") from error
    if field.get("format") == "date-time":
        return _moment(value, is_micro=name.endswith(".MicroTime"))
    return value


def _moment(text: str, *, is_micro: bool) -> str:
    layout = "2006-01-02T15:04:05.000000Z07:00" if is_micro else "2006-01-02T15:04:05Z07:00"
    match = _TIME.fullmatch(text)
    if not match:
        raise Undecodable(f'parsing time "{text}" as "{layout}": cannot parse "{text}" as "2006"')
    if is_micro:
        fraction = match[2] or ""
        if len(fraction) != 7:
            rest = fraction + match[3]
            raise Undecodable(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as ".000000"')
        return text
    return f"{match[1].upper()}Z" if match[3] in "Zz" else f"{match[1]}{match[3]}"


def _quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise Undecodable(quantities.REFUSAL)
    try:
        return quantities.canonical(value)
    except ValueError as error:
        raise Undecodable(str(error)) from error


def _mismatch(value: Any, node: Node, path: str, struct: str, go_type: str = "") -> Undecodable:
    described = {bool: "bool", str: "string", dict: "object", list: "array", type(None): "null"}.get(type(value))
    if described is None:
        described = "number" if isinstance(value, int) else f"number {value}"
    target = f"{struct}.{path}" if struct else path
    where = f"Go struct field {target} of type" if target else "Go value of type"
    return Undecodable(f"json: cannot unmarshal {described} into {where} {go_type or go_type_of(node)}")


def go_type_of(node: Node) -> str:
    """`[]v1.Container`, `map[string]string`, `int32`: how Go names the type of a field."""
    if "$ref" in node:
        *_, version, name = node["$ref"][len(REF) :].split(".")
        return f"{version}.{name}"
    kind = node.get("type")
    if kind == "array":
        return f"[]{go_type_of(node.get('items') or {})}"
    if kind == "integer":
        return str(node.get("format") or "int")
    if kind == "object" and isinstance(node.get("additionalProperties"), dict):
        return f"map[string]{go_type_of(node['additionalProperties'])}"
    return _GO_TYPES.get(kind or "", "map[string]interface {}")
