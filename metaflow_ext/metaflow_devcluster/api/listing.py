"""Lists: which resource version they show, and how they are cut into pages."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..errors import ApiError, Cause
from ..store import Store
from .requests import Target, whole_number
from .selectors import Predicate, selected_name, selector

Object = dict[str, Any]


@dataclass(frozen=True)
class Page:
    """The objects of a list and the list's own metadata."""

    objects: list[Object]
    meta: Object


def too_large_version(wanted: int, current: int) -> ApiError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": 1})


def version_of(text: str, *, code: int = 400) -> int:
    """A resourceVersion parameter as a number; 0 when absent. A watch refuses garbage with 500."""
    if not text:
        return 0
    if not text.isdigit():
        message = f'invalid resource version "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise ApiError(code, "BadRequest" if code == 400 else "InternalError", message)
    return int(text)


def list_causes(query: Mapping[str, str]) -> list[Cause]:
    match, version = query.get("resourceVersionMatch", ""), query.get("resourceVersion", "")
    found = []
    field = "resourceVersionMatch"
    if match and not version:
        found.append(_banned(field, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        found.append(_banned(field, "resourceVersionMatch is forbidden when continue is provided"))
    if match and match not in ("Exact", "NotOlderThan"):
        text = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        found.append(Cause(field, text, "FieldValueNotSupported"))
    if match == "Exact" and version == "0":
        found.append(_banned(field, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return found


def _banned(field: str, text: str) -> Cause:
    return Cause(field, f"Forbidden: {text}", "FieldValueForbidden")


def list_page(store: Store, target: Target, query: Mapping[str, str]) -> Page:
    """What a list request answers; raises the refusals of its options."""
    causes = list_causes(query)
    if causes:
        raise errors.invalid_options("ListOptions", causes)
    fields = query.get("fieldSelector", "")
    where = selector(target.resource, query.get("labelSelector", ""), fields)
    version = version_of(query.get("resourceVersion", ""))
    if version > store.resource_version:
        raise too_large_version(version, store.resource_version)
    token, limit = query.get("continue", ""), whole_number(query, "limit") or 0
    if token:
        return _next_page(store, target, where, token, limit)
    exact = query.get("resourceVersionMatch") == "Exact" or (version and limit and not query.get("resourceVersionMatch"))
    if exact:
        objects = store.list_at(target.resource.name, version, target.namespace)
        return _cut([obj for obj in objects if where is None or where(obj)], version, limit, where, target)
    name = selected_name(fields)
    if name and target.namespace is not None:
        found = store.find(target.resource.name, target.namespace, name)
        objects = [found] if found is not None and (where is None or where(found)) else []
    else:
        objects = store.list(target.resource.name, target.namespace, where)
    return _cut(objects, store.resource_version, limit, where, target)


def _next_page(store: Store, target: Target, where: Predicate | None, token: str, limit: int) -> Page:
    try:
        found = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = int(found["rv"]), tuple(found["start"])
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise errors.bad_request(f"invalid continue token: {error}") from error
    try:
        objects = store.list_at(target.resource.name, version, target.namespace)
    except errors.Expired as error:
        text = (
            "The provided continue parameter is too old to display a consistent list result. "
            "You must start a new list without the continue parameter."
        )
        raise errors.Expired(410, "Expired", text) from error
    rest = [obj for obj in objects if _identity(obj) > start and (where is None or where(obj))]
    return _cut(rest, version, limit, where, target)


def _identity(obj: Object) -> tuple[str, str]:
    return obj["metadata"].get("namespace") or "", obj["metadata"]["name"]


def _cut(objects: list[Object], version: int, limit: int, where: Predicate | None, target: Target) -> Page:
    meta: Object = {"resourceVersion": str(version)}
    if limit and len(objects) > limit:
        last = _identity(objects[limit - 1])
        token = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": last}, separators=(",", ":"))
        meta["continue"] = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
        if where is None:
            meta["remainingItemCount"] = len(objects) - limit
        objects = objects[:limit]
    return Page(objects, meta)
