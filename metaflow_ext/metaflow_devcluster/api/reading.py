"""GET: one object, lists, and watches up to the stream of encoded events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from .. import errors
from ..resources import Resource
from .context import Api, Reply, Request, encode
from .listing import list_page, too_large_version, version_of
from .requests import Target
from .tables import partial_metadata
from .watching import Event, WatchOptions, events

Object = dict[str, Any]


def get_object(api: Api, target: Target, request: Request) -> Reply:
    version = version_of(request.query.get("resourceVersion", ""))
    if version > api.store.resource_version:
        raise too_large_version(version, api.store.resource_version)
    found = api.store.find(target.resource.name, target.namespace, target.name)
    if found is None:
        raise errors.not_found(target.resource.name, target.name)
    return api.shown(target.resource, found, request)


def list_objects(api: Api, target: Target, request: Request) -> Reply:
    page = list_page(api.store, target, request.query)
    return Reply(body=collection(api, target.resource, page.objects, page.meta, request))


def collection(api: Api, resource: Resource, objects: list[Object], meta: Object, request: Request) -> Object:
    """A list in the form the client accepts; items of built-in kinds carry no kind of their own."""
    if request.answer.is_table:
        include = request.query.get("includeObject", "Metadata")
        return api.tables.table(resource, objects, meta, include=include)
    if request.answer.is_partial:
        items = [partial_metadata(obj) for obj in objects]
        return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": meta, "items": items}
    head = {"kind": resource.collection_kind, "apiVersion": resource.api_version, "metadata": meta}
    return {**head, "items": objects if resource.custom else [bare(obj) for obj in objects]}


def bare(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


async def watch_lines(api: Api, target: Target, request: Request, options: WatchOptions) -> AsyncIterator[bytes]:
    """The events as lines of JSON, as many at a time as are there; empty when there is nothing to begin with."""
    has_head = False
    async for batch in events(api.store, target, options):
        lines = []
        for event in batch:
            lines.append(_line(api, target.resource, event, request, head=not has_head))
            has_head = has_head or event[0] not in ("BOOKMARK", "ERROR")
        yield b"".join(lines)


def _line(api: Api, resource: Resource, event: Event, request: Request, *, head: bool) -> bytes:
    kind, obj = event
    if kind != "ERROR" and request.answer.is_table:
        include = request.query.get("includeObject", "Metadata")
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        objects = [obj] if kind != "BOOKMARK" else []
        if kind == "BOOKMARK":
            meta = obj["metadata"]
        obj = api.tables.table(resource, objects, meta, include=include, head=head)
    elif kind != "ERROR" and request.answer.is_partial:
        obj = partial_metadata(obj)
    return encode({"type": kind, "object": obj}) + b"\n"
