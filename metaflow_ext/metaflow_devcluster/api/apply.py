"""Server-side apply: who owns which field, merged by the schema's list types, with conflicts between appliers.

Ownership is kept in metadata.managedFields, for managers that apply; fields written by plain updates belong to
nobody here, so they never conflict.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import ApiError, Cause, cause_entry
from ..store import clone
from .schema import Node, Schemas, properties_of

Object = dict[str, Any]
_IDENTITY = ("apiVersion", "kind")
_IDENTITY_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")


def applied(
    schemas: Schemas, node: Node, live: Object | None, wanted: Object, *, manager: str, force: bool, now: str
) -> Object:
    """The object after `manager` applied `wanted`; 409 when it would change what another applier owns."""
    entries = [dict(e) for e in ((live or {}).get("metadata") or {}).get("managedFields") or ()]
    own = next((e for e in entries if e["manager"] == manager and e["operation"] == "Apply"), None)
    others = [e for e in entries if e is not own and e["operation"] == "Apply"]
    fields = _without_identity(field_set(schemas, node, wanted))
    before: Object = clone(live) if live else {}
    result: Object = merged(schemas, node, before, wanted)
    for entry in others:
        changed = [path for path in _common(fields, entry["fieldsV1"]) if _at(before, path) != _at(wanted, path)]
        if changed and not force:
            raise _conflict(entry["manager"], changed)
        entry["fieldsV1"] = _minus(entry["fieldsV1"], changed)
    for path in _leaves(own["fieldsV1"]) if own else ():
        if not _has(fields, path) and not any(_has(entry["fieldsV1"], path) for entry in others):
            _remove(result, path)
    record = {"manager": manager, "operation": "Apply", "apiVersion": wanted["apiVersion"], "time": now}
    entry = {**record, "fieldsType": "FieldsV1", "fieldsV1": fields}
    if own and own["fieldsV1"] == fields:
        entry["time"] = own["time"]
    kept = [e for e in entries if e is not own and (e["operation"] != "Apply" or e["fieldsV1"])]
    result["metadata"] = {**result["metadata"], "managedFields": [entry, *kept]}
    return result


def merged(schemas: Schemas, node: Node, live: Any, wanted: Any) -> Any:
    """`wanted` laid over `live`: maps by key, keyed lists by their keys, sets joined, the rest replaced."""
    resolved = schemas.resolve(node)
    if isinstance(wanted, dict):
        base = dict(live) if isinstance(live, dict) else {}
        for key, value in wanted.items():
            base[key] = merged(schemas, _child(resolved, key), base.get(key), value)
        return base
    if isinstance(wanted, list) and isinstance(live, list):
        kind = node.get("x-kubernetes-list-type")
        if kind == "set":
            return [*live, *(item for item in wanted if item not in live)]
        if kind == "map":
            return _merged_list(schemas, node, live, wanted)
    return clone(wanted)


def _merged_list(schemas: Schemas, node: Node, live: list[Any], wanted: list[Any]) -> list[Any]:
    keys = node["x-kubernetes-list-map-keys"]
    result = list(live)
    for item in wanted:
        identity = _key_of(item, keys)
        place = next((i for i, present in enumerate(result) if _key_of(present, keys) == identity), None)
        if place is None:
            result.append(clone(item))
        else:
            result[place] = merged(schemas, node.get("items") or {}, result[place], item)
    return result


def _key_of(item: Object, keys: list[str]) -> Object:
    defaults = {"protocol": "TCP"}
    found = {key: item.get(key, defaults.get(key)) for key in keys}
    return {key: value for key, value in found.items() if value is not None}


def _child(resolved: Node, key: str) -> Node:
    extra = resolved.get("additionalProperties")
    return (properties_of(resolved) or {}).get(key) or (extra if isinstance(extra, dict) else {})


def field_set(schemas: Schemas, node: Node, value: Any) -> Object:
    """The fields of a value in the FieldsV1 form: `f:<field>`, `k:{<keys>}`, `v:<value>`; empty for leaves."""
    resolved = schemas.resolve(node)
    if isinstance(value, dict):
        return {f"f:{key}": field_set(schemas, _child(resolved, key), item) for key, item in value.items()}
    if isinstance(value, list):
        kind = node.get("x-kubernetes-list-type")
        if kind == "map":
            keys, items = node["x-kubernetes-list-map-keys"], node.get("items") or {}
            return {_list_key(item, keys): {".": {}, **field_set(schemas, items, item)} for item in value}
        if kind == "set":
            return {f"v:{json.dumps(item)}": {} for item in value}
    return {}


def _list_key(item: Object, keys: list[str]) -> str:
    return "k:" + json.dumps(_key_of(item, keys), separators=(",", ":"), sort_keys=True)


def _without_identity(fields: Object) -> Object:
    kept = {key: value for key, value in fields.items() if key[2:] not in _IDENTITY}
    meta = {key: value for key, value in kept.pop("f:metadata", {}).items() if key[2:] not in _IDENTITY_META}
    return {**kept, "f:metadata": meta} if meta else kept


def _leaves(fields: Object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all values, and of all elements of keyed lists, each before what is in it."""
    found = []
    for key, inner in fields.items():
        if key == ".":
            continue
        if key.startswith("k:"):
            found.append((*path, key))
        found += _leaves(inner, (*path, key)) if inner else [(*path, key)]
    return found


def _common(fields: Object, other: Object) -> list[tuple[str, ...]]:
    theirs = set(_leaves(other))
    return [path for path in _leaves(fields) if path in theirs and not path[-1].startswith("k:")]


def _has(fields: Object, path: tuple[str, ...]) -> bool:
    for step in path:
        if step not in fields:
            return False
        fields = fields[step]
    return True


def _minus(fields: Object, paths: list[tuple[str, ...]]) -> Object:
    result = clone(fields)
    for path in paths:
        parents = [result]
        for step in path[:-1]:
            parents.append(parents[-1][step])
        del parents[-1][path[-1]]
        for parent, step in zip(reversed(parents[:-1]), reversed(path[:-1]), strict=True):
            if not parent[step]:
                del parent[step]
    return result  # type: ignore[no-any-return]


def _step(value: Any, step: str) -> Any:
    """The part of a value that one path step means; None when it is not there."""
    if step.startswith("f:"):
        return value.get(step[2:]) if isinstance(value, dict) else None
    wanted = json.loads(step[2:])
    if not isinstance(value, list):
        return None
    if step.startswith("v:"):
        return wanted if wanted in value else None
    return next((item for item in value if _key_of(item, list(wanted)) == wanted), None)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        value = _step(value, step)
    return value


def _remove(value: Any, path: tuple[str, ...]) -> None:
    parent = _at(value, path[:-1])
    last = path[-1]
    if isinstance(parent, dict):
        parent.pop(last[2:], None)
    elif isinstance(parent, list):
        found = _step(parent, last)
        if found in parent:
            parent.remove(found)


def _conflict(manager: str, paths: list[tuple[str, ...]]) -> ApiError:
    shown = [_path_text(path) for path in paths]
    count = f"{len(shown)} conflict{'s' if len(shown) > 1 else ''}"
    by = f'conflict with "{manager}": ' if len(shown) == 1 else f'conflicts with "{manager}":\n- '
    text = f"Apply failed with {count}: {by}" + "\n- ".join(shown)
    causes = [cause_entry(Cause(path, f'conflict with "{manager}"', "FieldManagerConflict")) for path in shown]
    return ApiError(409, "Conflict", text, {"causes": causes})


def _path_text(path: tuple[str, ...]) -> str:
    text = ""
    for step in path:
        if step.startswith("f:"):
            text += f".{step[2:]}"
        elif step.startswith("k:"):
            keys = ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(step[2:]).items())
            text += f"[{keys}]"
        else:
            text += f"[={step[2:]}]"
    return text
