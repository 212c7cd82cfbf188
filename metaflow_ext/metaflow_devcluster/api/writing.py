"""POST, PUT and PATCH of objects: decode, admit, store, or stop before storing when it is a dry run."""

from __future__ import annotations

from typing import Any

from .. import errors
from ..errors import ApiError, Cause
from ..store import clone, timestamp
from . import apply, patches
from .context import Api, Reply, Request
from .decoding import Decoded, conform, identified, parse, settle
from .definitions import DEFINITIONS
from .requests import Target, WriteOptions, write_options

Object = dict[str, Any]


def create_object(api: Api, target: Target, request: Request) -> Reply:
    resource = target.resource
    options = write_options(request.query, "CreateOptions")
    obj, warnings = decode_object(api, target, request, options)
    meta = obj["metadata"] = obj.get("metadata") or {}
    check_namespace(target, meta)
    if meta.get("resourceVersion"):
        raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
    admitted, more = api.admission.admit_create(resource.name, obj)
    if options.dry_run:
        _refuse_existing(api, target, admitted["metadata"]["name"])
        created = api.store.prepared(resource.name, admitted)
    else:
        created = api.store.create(resource.name, admitted)
        if resource.name == DEFINITIONS:
            api.definitions.serve(created)
    reply = api.shown(resource, created, request, 201)
    return _warned(reply, [*warnings, *more])


def _warned(reply: Reply, warnings: list[str]) -> Reply:
    if not warnings:
        return reply
    return Reply(code=reply.code, body=reply.body, warnings=tuple(warnings))


def _refuse_existing(api: Api, target: Target, name: str) -> None:
    existing = api.store.find(target.resource.name, target.namespace, name)
    if existing is not None:
        being_deleted = bool(existing["metadata"].get("deletionTimestamp"))
        raise errors.already_exists(target.resource.name, name, being_deleted=being_deleted)


def decode_object(api: Api, target: Target, request: Request, options: WriteOptions) -> tuple[Object, list[str]]:
    """The object in a body, known fields only, and the warnings about the others."""
    value = parse(request.body, request.content_type, target.resource.kind)
    obj = identified(value, target.resource, request.body)
    decoded = conform(api.schemas, target.resource, _marked(value, obj))
    return decoded.object, settle(decoded, target.resource, options.field_validation)


def _marked(value: Object, obj: Object) -> Object:
    """Keep the memory of repeated keys on the outermost object, which `identified` has copied."""
    if not hasattr(value, "repeated"):
        return obj
    value.update(obj)
    return value


def check_namespace(target: Target, meta: Object) -> None:
    if target.namespace is None:
        return
    if meta.get("namespace") and meta["namespace"] != target.namespace:
        text = "the namespace of the provided object does not match the namespace sent on the request"
        raise errors.bad_request(text)
    meta["namespace"] = target.namespace


def _check_identity(target: Target, meta: Object) -> None:
    name = meta.get("name") or target.name
    if name != target.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({target.name})"
        raise errors.bad_request(text)
    meta["name"] = target.name
    check_namespace(target, meta)


def replace_object(api: Api, target: Target, request: Request) -> Reply:
    options = write_options(request.query, "UpdateOptions")
    obj, warnings = decode_object(api, target, request, options)
    meta = obj["metadata"] = obj.get("metadata") or {}
    _check_identity(target, meta)
    current = api.store.get(target.resource.name, target.namespace, target.name)
    if target.resource.custom and not meta.get("resourceVersion"):
        text = "Invalid value: 0: must be specified for an update"
        cause = Cause("metadata.resourceVersion", text)
        raise errors.invalid(target.resource.kind, target.resource.group, target.name, [cause])
    _check_uid(target, meta, current)
    updated = write(api, target, obj, current, dry_run=options.dry_run)
    return _warned(api.shown(target.resource, updated, request), warnings)


def _check_uid(target: Target, meta: Object, current: Object) -> None:
    if meta.get("uid") and meta["uid"] != current["metadata"]["uid"]:
        resource = target.resource
        key = f"/registry/{resource.name}/{target.namespace or ''}/{target.name}".replace("//", "/")
        text = (
            f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
            f"failed: UID in precondition: {meta['uid']}, UID in object meta: {current['metadata']['uid']}"
        )
        raise errors.conflict(resource.name, target.name, text)


def write(api: Api, target: Target, obj: Object, current: Object, *, dry_run: bool) -> Object:
    """Admit and store a changed object; through /status only the status is taken."""
    resource = target.resource
    version = obj["metadata"].get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise errors.stale(resource.name, target.name)
    if target.subresource == "status":
        admitted = api.admission.admit_status(resource.name, obj, current)
    else:
        admitted, _ = api.admission.admit_update(resource.name, obj, current)
    if dry_run:
        return api.store.merged(resource.name, current, admitted)
    updated = api.store.update(resource.name, admitted)
    if resource.name == DEFINITIONS and not target.subresource:
        if api.store.find(DEFINITIONS, None, target.name) is None:
            api.definitions.withdraw(updated)
        else:
            api.definitions.serve(updated)
    return updated


def patch_object(api: Api, target: Target, request: Request) -> Reply:
    resource = target.resource
    accepted = patches.CUSTOM_PATCHES if resource.custom else patches.BUILT_IN_PATCHES
    media = request.content_type.partition(";")[0].strip()
    if media not in accepted:
        raise errors.unsupported_media_type(accepted)
    options = write_options(request.query, "PatchOptions")
    if media == patches.APPLY_PATCH:
        return _apply(api, target, request, options)
    current = api.store.get(resource.name, target.namespace, target.name)
    patched = _patched(api, target, request, media, current)
    decoded = _conform_patched(api, target, patched)
    warnings = settle(decoded, resource, options.field_validation)
    obj = decoded.object
    _check_patched_identity(target, obj["metadata"], current["metadata"])
    updated = write(api, target, obj, current, dry_run=options.dry_run)
    return _warned(api.shown(resource, updated, request), warnings)


def _patched(api: Api, target: Target, request: Request, media: str, current: Object) -> Any:
    resource = target.resource
    patch = parse(request.body, "application/json", resource.kind)
    if media == patches.JSON_PATCH:
        return patches.json_patch(clone(current), patch)
    if media == patches.MERGE_PATCH:
        return patches.merge_patch(current, patch)
    node = api.schemas.root(resource.group, resource.version, resource.kind) or {}
    return patches.strategic_merge_patch(api.schemas, node, current, patch)


def _conform_patched(api: Api, target: Target, patched: Any) -> Decoded:
    obj = identified(patched, target.resource, b"")
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    return conform(api.schemas, target.resource, obj)


def _check_patched_identity(target: Target, meta: Object, before: Object) -> None:
    causes = [
        Cause(f"metadata.{key}", f'Invalid value: "{meta.get(key, "")}": field is immutable')
        for key in ("name", "namespace", "uid")
        if meta.get(key, "") != before.get(key, "")
    ]
    if causes and not target.subresource:
        if any(cause.field == "metadata.name" for cause in causes):
            text = f"the name of the object ({meta.get('name')}) does not match the name on the URL ({target.name})"
            raise errors.bad_request(text)
        raise errors.invalid(target.resource.kind, target.resource.group, target.name, causes)


def _apply(api: Api, target: Target, request: Request, options: WriteOptions) -> Reply:
    resource = target.resource
    if not options.manager:
        cause = Cause("fieldManager", "Required value: is required for apply patch", "FieldValueRequired")
        raise errors.invalid_options("PatchOptions", [cause])
    value = parse(request.body, "application/yaml", resource.kind)
    obj = identified(value, resource, request.body)
    decoded = conform(api.schemas, resource, obj)
    warnings = settle(decoded, resource, options.field_validation)
    wanted = decoded.object
    meta = wanted["metadata"] = dict(wanted.get("metadata") or {})
    _check_identity(target, meta)
    if meta.pop("managedFields", None):
        raise errors.bad_request("metadata.managedFields must be nil")
    live = api.store.find(resource.name, target.namespace, target.name)
    node = api.schemas.root(resource.group, resource.version, resource.kind) or {}
    result = apply.applied(api.schemas, node, live, wanted, manager=options.manager, force=options.force, now=timestamp())
    if live is None:
        return _warned(_create_applied(api, target, request, result, options), warnings)
    if _is_unchanged(result, live):
        return _warned(api.shown(resource, live, request), warnings)
    updated = write(api, target, result, live, dry_run=options.dry_run)
    return _warned(api.shown(resource, updated, request), warnings)


def _create_applied(api: Api, target: Target, request: Request, obj: Object, options: WriteOptions) -> Reply:
    if target.subresource:
        raise errors.not_found(target.resource.name, target.name)
    admitted, _ = api.admission.admit_create(target.resource.name, obj)
    if options.dry_run:
        return api.shown(target.resource, api.store.prepared(target.resource.name, admitted), request, 201)
    created = api.store.create(target.resource.name, admitted)
    if target.resource.name == DEFINITIONS:
        api.definitions.serve(created)
    return api.shown(target.resource, created, request, 201)


def _is_unchanged(result: Object, live: Object) -> bool:
    """Whether only the time of the apply would change, which is not worth a write."""
    return result == live
