"""Structural validation and defaulting of custom resources, with the texts of the API server's CRD validator.

Covers what JobSet's schema uses: types, required, enum, bounds, lengths, patterns, unique list keys, and the one
transition rule `self == oldSelf`. Other CEL rules of user-supplied CRDs are not evaluated.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import Cause
from . import names
from .schema import Node, Schemas, properties_of

_PYTHON = {"object": dict, "array": list, "string": str, "boolean": bool}
_EXCLUSIVE = "!(has(self.startupPolicy) && self.startupPolicy.startupPolicyOrder == 'InOrder'"


def apply_schema_defaults(schemas: Schemas, node: Node, value: Any) -> None:
    """Fill in `default` of absent or null fields, in place."""
    node = schemas.resolve(node)
    if isinstance(value, list):
        for item in value:
            apply_schema_defaults(schemas, node.get("items") or {}, item)
    elif isinstance(value, dict):
        for key, child in (properties_of(node) or {}).items():
            if value.get(key) is None and "default" in child:
                value[key] = json.loads(json.dumps(child["default"]))
            elif key in value and value[key] is None and not child.get("nullable") and "default" not in child:
                continue
            if key in value and key != "metadata":
                apply_schema_defaults(schemas, child, value[key])


def schema_causes(schemas: Schemas, node: Node, value: Any, path: str = "") -> list[Cause]:
    """Broken rules of the schema in a whole object; metadata has rules of its own elsewhere."""
    node = schemas.resolve(node)
    if node.get("oneOf") or node.get("x-kubernetes-int-or-string") or node.get("format") == "int-or-string":
        return []
    wrong_type = _type_cause(node, value, path)
    if wrong_type:
        return [wrong_type]
    found = _value_causes(node, value, path)
    if isinstance(value, list):
        items = node.get("items") or {}
        found += _list_causes(node, value, path)
        for index, item in enumerate(value):
            found += schema_causes(schemas, items, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        found += _object_causes(schemas, node, value, path)
    return found


def _type_cause(node: Node, value: Any, path: str) -> Cause | None:
    kind = node.get("type")
    if kind is None or (value is None and node.get("nullable")):
        return None
    if kind in ("integer", "number"):
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        fits = is_number and (kind == "number" or float(value).is_integer())
    else:
        fits = isinstance(value, _PYTHON.get(kind, object))
    if fits:
        return None
    actual = _type_name(value)
    label = path or "<nil>"
    return Cause(
        label, f'Invalid value: "{actual}": {label} in body must be of type {kind}: "{actual}"', "FieldValueTypeInvalid"
    )


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return {dict: "object", list: "array", str: "string", int: "integer"}.get(type(value), "number")


def _value_causes(node: Node, value: Any, path: str) -> list[Cause]:
    found = []
    if "enum" in node and value not in node["enum"]:
        found.append(names.unsupported(path, value, node["enum"]))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if "minimum" in node and value < node["minimum"]:
            text = f"{path} in body should be greater than or equal to {node['minimum']}"
            found.append(names.wrong(path, value, text))
        if "maximum" in node and value > node["maximum"]:
            found.append(names.wrong(path, value, f"{path} in body should be less than or equal to {node['maximum']}"))
    if isinstance(value, str):
        if len(value) < node.get("minLength", 0):
            text = f"{path} in body should be at least {node['minLength']} chars long"
            found.append(names.wrong(path, value, text))
        if len(value) > node.get("maxLength", len(value)):
            text = f"Too long: may not be more than {node['maxLength']} bytes"
            found.append(Cause(path, text, "FieldValueTooLong"))
        if "pattern" in node and not re.search(node["pattern"], value):
            found.append(names.wrong(path, value, f"{path} in body should match '{node['pattern']}'"))
    return found


def _list_causes(node: Node, value: list[Any], path: str) -> list[Cause]:
    found = []
    if len(value) > node.get("maxItems", len(value)):
        most = node["maxItems"]
        found.append(Cause(path, f"Too many: {len(value)}: must have at most {most} items", "FieldValueTooMany"))
    if len(value) < node.get("minItems", 0):
        found.append(names.wrong(path, len(value), f"{path} in body should have at least {node['minItems']} items"))
    kind = node.get("x-kubernetes-list-type")
    if kind not in ("map", "set"):
        return found
    seen = []
    for index, item in enumerate(value):
        key = item
        if kind == "map" and isinstance(item, dict):
            key = {name: item[name] for name in node.get("x-kubernetes-list-map-keys", ()) if name in item}
        if key in seen:
            found.append(names.duplicate(f"{path}[{index}]", key))
        seen.append(key)
    return found


def _object_causes(schemas: Schemas, node: Node, value: dict[str, Any], path: str) -> list[Cause]:
    prefix = f"{path}." if path else ""
    found = [names.required(prefix + key) for key in node.get("required", ()) if key not in value]
    properties, extra = properties_of(node) or {}, node.get("additionalProperties")
    for key, item in value.items():
        if not path and key in ("metadata", "kind", "apiVersion"):
            continue
        if key in properties:
            found += schema_causes(schemas, properties[key], item, prefix + key)
        elif isinstance(extra, dict):
            found += schema_causes(schemas, extra, item, prefix + key)
    for rule in node.get("x-kubernetes-validations", ()):
        if rule["rule"].startswith(_EXCLUSIVE) and not found and _orders_twice(value):
            found.append(Cause(path, f'Invalid value: "object": {rule["message"]}'))
    return found


def _orders_twice(spec: dict[str, Any]) -> bool:
    """Whether a JobSet of valid types has both ways to say in which order its Jobs start."""
    ordered = (spec.get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    return ordered and any("dependsOn" in item for item in spec.get("replicatedJobs") or ())


def transition_causes(schemas: Schemas, node: Node, new: Any, old: Any, path: str = "") -> list[Cause]:
    """Fields under the rule `self == oldSelf` that changed; a field that was absent before may appear."""
    rules = list(node.get("x-kubernetes-validations", ()))
    node = schemas.resolve(node)
    rules += node.get("x-kubernetes-validations", ())
    if any(rule["rule"] == "self == oldSelf" for rule in rules) and new != old:
        return [Cause(path, "Invalid value: Value is immutable")]
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return []
    prefix = f"{path}." if path else ""
    return [
        cause
        for key, child in (properties_of(node) or {}).items()
        if key in new and key in old and key != "metadata"
        for cause in transition_causes(schemas, child, new[key], old[key], prefix + key)
    ]
