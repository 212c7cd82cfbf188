"""The patch formats: JSON patch, JSON merge patch, and strategic merge patch with its directives.

Pure functions from a document and a patch to a new document; server-side apply is in `apply`.
"""

from __future__ import annotations

from typing import Any

import jsonpatch
import jsonpointer

from ..errors import ApiError, bad_request
from ..store import clone
from .schema import Node, Schemas, properties_of

Object = dict[str, Any]
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
CUSTOM_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
BUILT_IN_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_DIRECTIVES = ("$patch", "$retainKeys", "$setElementOrder/", "$deleteFromPrimitiveList/")


def json_patch(document: Object, patch: Any) -> Any:
    """RFC 6902; any operation that fails is the same 422, as on the real server."""
    if not isinstance(patch, list):
        raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    try:
        return jsonpatch.apply_patch(document, patch)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError) as error:
        text = "the server rejected our request due to an error in our request"
        raise ApiError(422, "Invalid", text) from error


def merge_patch(document: Any, patch: Any) -> Any:
    """RFC 7386: null deletes, objects merge, the rest replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_merge_patch(schemas: Schemas, node: Node, document: Object, patch: Any) -> Object:
    """Merge by the patch strategies of the schema; the patch may carry directives ($patch and others)."""
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}")
    return _merge_object(schemas, node, document, patch)


def _merge_object(schemas: Schemas, node: Node, document: Any, patch: Object) -> Object:
    directive = patch.get("$patch")
    if directive == "delete":
        return {}
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(document) if isinstance(document, dict) else {}
    retained = patch.get("$retainKeys")
    if retained is not None:
        merged = {key: value for key, value in merged.items() if key in retained}
    resolved = schemas.resolve(node)
    properties, extra = properties_of(resolved) or {}, resolved.get("additionalProperties")
    for key, value in patch.items():
        child = properties.get(key) or (extra if isinstance(extra, dict) else {})
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            merged[name] = [item for item in merged.get(name) or () if item not in value]
        elif key.startswith(_DIRECTIVES):
            continue
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merge_object(schemas, child, merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = _merge_list(schemas, child, merged.get(key) or [], value)
        else:
            merged[key] = value
    for key, order in patch.items():
        if key.startswith("$setElementOrder/"):
            _order(merged, key.partition("/")[2], order, properties)
    return merged


def _merge_list(schemas: Schemas, node: Node, document: list[Any], patch: list[Any]) -> list[Any]:
    if "merge" not in str(node.get("x-kubernetes-patch-strategy", "")).split(","):
        return [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    key = node.get("x-kubernetes-patch-merge-key")
    if not key:
        return [*document, *(item for item in patch if item not in document)]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [item for item in patch if item.get("$patch") != "replace"]
    merged: list[Any] = clone(document)
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise bad_request(f"map: {item} does not contain declared merge key: {key}")
        place = next((i for i, present in enumerate(merged) if present.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [present for present in merged if present.get(key) != item[key]]
        elif place is None:
            merged.append(_merge_object(schemas, node.get("items") or {}, {}, item))
        else:
            merged[place] = _merge_object(schemas, node.get("items") or {}, merged[place], item)
    return merged


def _order(merged: Object, name: str, order: list[Any], properties: Any) -> None:
    """Elements the patch names in its order; the others stay behind the one they followed, here: at the end."""
    items = merged.get(name)
    if not isinstance(items, list):
        return
    key = (properties.get(name) or {}).get("x-kubernetes-patch-merge-key")
    wanted = [item.get(key) if isinstance(item, dict) else item for item in order]

    def place(item: Any) -> int:
        identity = item.get(key) if isinstance(item, dict) else item
        return wanted.index(identity) if identity in wanted else len(wanted)

    merged[name] = sorted(items, key=place)
