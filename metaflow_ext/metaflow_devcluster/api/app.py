"""The HTTP side: who may talk to the server at all, where a request goes, and how a reply is sent.

The port is on the loopback interface, where every local user can reach it, and it starts processes; so a path
without the secret prefix, or with a foreign Host header (a web page's), learns nothing but 404.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import unquote

import yaml
from aiohttp import web

from ..errors import ApiError, internal, method_not_allowed, no_such_path, too_large
from . import access, discovery, openapi, openapi_v2, subresources
from .context import Api, Reply, Request
from .deleting import delete_collection, delete_object
from .pod_exec import pod_exec
from .pod_logs import pod_log
from .reading import get_object, list_objects, watch_lines
from .requests import YAML, Target, UnknownPath, is_true, negotiate, target_of
from .watching import watch_options
from .writing import create_object, patch_object, replace_object

_LOGGER = logging.getLogger(__name__)
_HOSTS = frozenset(("127.0.0.1", "localhost", "[::1]"))
_NOT_FOUND = Reply(code=404, text=b"404 page not found\n", content_type="text/plain")
_OK = Reply(text=b"ok", content_type="text/plain; charset=utf-8")
_HEALTH = ("healthz", "livez", "readyz")
_BODY_LIMIT = 3 * 1024 * 1024
_CREATED_BELOW = {
    "binding": subresources.create_binding,
    "eviction": subresources.create_eviction,
    "token": access.token,
}


class App:
    """Serves one Api under one secret; `handler` is what aiohttp calls."""

    def __init__(self, api: Api, secret: str) -> None:
        self.api = api
        self._prefix = f"/s/{secret}" if secret else ""

    async def handler(self, raw: web.BaseRequest) -> web.StreamResponse:
        path = self._path_below_prefix(raw)
        if path is None:
            return web.Response(status=404)
        try:
            return await self._serve(raw, path)
        except ApiError as error:
            return _response(_refusal(error))
        except UnknownPath:
            return _response(_NOT_FOUND)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception as error:
            _LOGGER.exception("%s %s failed", raw.method, path)
            return _response(_refusal(internal(str(error))))

    def _path_below_prefix(self, raw: web.BaseRequest) -> str | None:
        host = raw.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        path = raw.rel_url.raw_path
        given = path[: len(self._prefix)]
        is_allowed = hmac.compare_digest(given.encode(), self._prefix.encode()) and name in _HOSTS
        rest = path[len(self._prefix) :]
        return unquote(rest) or "/" if is_allowed and rest[:1] in ("", "/") else None

    async def _serve(self, raw: web.BaseRequest, path: str) -> web.StreamResponse:
        parts = [part for part in path.split("/") if part]
        if len(parts) < (3 if parts[:1] == ["api"] else 4) or parts[0] not in ("api", "apis"):
            return _response(self._described(raw, parts))
        target = target_of(self.api.resources, path)
        request = await _read(raw, path, target)
        access.check_impersonation(target, request)
        if raw.method == "GET" or target.subresource == "exec":
            return await self._get(target, request, raw)
        return _response(self._write(target, request))

    # -- documents about the server

    def _described(self, raw: web.BaseRequest, parts: list[str]) -> Reply:
        resources = self.api.resources
        if raw.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if not parts:
            paths = [
                "/api",
                "/api/v1",
                "/apis",
                *(f"/{kind}" for kind in _HEALTH),
                "/openapi/v2",
                "/openapi/v3",
                "/version",
            ]
            return Reply(body={"paths": paths})
        head, rest = parts[0], parts[1:]
        if head in _HEALTH:
            return _OK
        if parts == ["version"]:
            return Reply(body=discovery.version())
        if head == "openapi":
            return self._openapi(raw, rest)
        if head in ("api", "apis") and not rest:
            return self._groups(raw, core=head == "api")
        body = None
        if head == "api" and len(rest) == 1:
            body = discovery.resource_list(resources, "", rest[0])
        elif head == "apis" and len(rest) == 1:
            body = discovery.group_of(resources, rest[0])
        elif head == "apis" and len(rest) == 2:
            body = discovery.resource_list(resources, rest[0], rest[1])
        elif head == "apis" and (rest[0], rest[1]) in resources.group_versions():
            raise no_such_path()
        return Reply(body=body) if body else _NOT_FOUND

    def _groups(self, raw: web.BaseRequest, *, core: bool) -> Reply:
        accept = raw.headers.get("Accept", "").replace(" ", "")
        for entry in accept.split(","):
            for form in ("v2", "v2beta1"):
                if "as=APIGroupDiscoveryList" in entry and f"v={form};" in f"{entry};":
                    body = discovery.aggregated(self.api.resources, core=core, form=form)
                    return Reply(body=body, content_type=discovery.AGGREGATED.format(version=form))
        if core:
            return Reply(body=discovery.api_versions(raw.headers.get("Host", "")))
        return Reply(body=discovery.group_list(self.api.resources))

    def _openapi(self, raw: web.BaseRequest, rest: list[str]) -> Reply:
        resources, schemas = self.api.resources, self.api.schemas
        if rest == ["v2"]:
            accept = raw.headers.get("Accept", "")
            if any(media in accept for media in openapi_v2.ASKED_FOR):
                return Reply(text=openapi_v2.as_protobuf(resources, schemas), content_type=openapi_v2.MEDIA)
            return Reply(text=openapi_v2.as_json(resources, schemas))
        if rest == ["v3"]:
            return Reply(body=openapi.index(resources, schemas))
        group, version = (rest[2], rest[3]) if len(rest) == 4 else ("", rest[-1])
        if (group, version) not in resources.group_versions():
            return _NOT_FOUND
        return Reply(text=openapi.document(resources, schemas, group, version))

    # -- objects

    async def _get(self, target: Target, request: Request, raw: web.BaseRequest) -> web.StreamResponse:
        if target.subresource == "exec":
            return await pod_exec(self.api, target, request, raw)
        if target.subresource == "log":
            return await _stream(raw, "text/plain", pod_log(self.api, target, request))
        if "get" not in target.resource.verbs or target.subresource not in ("", "status"):
            raise method_not_allowed()
        if is_true(request.query.get("watch")):
            options = watch_options(target, request.query)
            return await _stream(raw, _watch_type(request), watch_lines(self.api, target, request, options))
        if target.name:
            return _response(get_object(self.api, target, request), request)
        return _response(list_objects(self.api, target, request), request)

    def _write(self, target: Target, request: Request) -> Reply:
        api, method = self.api, request.method
        if method == "POST" and target.subresource in _CREATED_BELOW:
            return _CREATED_BELOW[target.subresource](api, target, request)
        if target.subresource == "finalize" and method == "PUT":
            return subresources.finalize(api, target, request)
        verbs = target.resource.verbs
        if method == "POST" and not target.name and "create" in verbs:
            if target.resource.group == "authorization.k8s.io":
                return access.review(api, target, request)
            return create_object(api, target, request)
        if target.name and target.subresource in ("", "status") and "update" in verbs:
            if method == "PUT":
                return replace_object(api, target, request)
            if method == "PATCH":
                return patch_object(api, target, request)
        if method == "DELETE" and not target.subresource:
            if target.name and "delete" in verbs:
                return delete_object(api, target, request)
            if not target.name and "deletecollection" in verbs:
                return delete_collection(api, target, request)
        raise method_not_allowed()


async def _read(raw: web.BaseRequest, path: str, target: Target) -> Request:
    headers = raw.headers
    body = b""
    if raw.method != "GET":
        try:
            body = await raw.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise too_large(_BODY_LIMIT) from error
    accept = headers.get("Accept", "")
    query = raw.rel_url.query
    return Request(
        method=raw.method,
        path=path,
        query=query,
        headers=headers,
        body=body,
        content_type=headers.get("Content-Type", ""),
        accept=accept,
        answer=negotiate("" if target.subresource in ("log", "exec") else accept),
        repeated={"command": query.getall("command", [])} if target.subresource == "exec" else {},
    )


def _watch_type(request: Request) -> str:
    if request.answer.form:
        return f"application/json;as={request.answer.form};v=v1;g=meta.k8s.io"
    return "application/json"


def _refusal(error: ApiError) -> Reply:
    wait = error.details.get("retryAfterSeconds")
    headers = {"Retry-After": str(wait)} if wait else {}
    return Reply(code=error.code, body=error.status(), headers=headers)


def _response(reply: Reply, request: Request | None = None) -> web.Response:
    payload, kind = reply.payload(), reply.content_type
    if request is not None and request.answer.media == YAML and reply.body is not None:
        payload, kind = yaml.safe_dump(reply.body, sort_keys=False).encode(), YAML
    response = web.Response(status=reply.code, body=payload, headers={"Content-Type": kind, **reply.headers})
    response.headers["Cache-Control"] = "no-cache, private"
    for warning in reply.warnings:
        escaped = warning.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


async def _stream(raw: web.BaseRequest, kind: str, pieces: AsyncIterator[bytes]) -> web.StreamResponse:
    """Send pieces as they come, chunked and never compressed; end the source when the client has left."""
    response = web.StreamResponse(headers={"Content-Type": kind, "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(raw)
    try:
        async for piece in pieces:
            if piece:
                await response.write(piece)
        await response.write_eof()
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()
    return response


def web_server(app: App) -> web.Server:
    """aiohttp's server for an App: handlers are cancelled when their client leaves, bodies are bounded."""
    return web.Server(app.handler, request_factory=_bounded, handler_cancellation=True, access_log=None, keepalive_timeout=75)


def _bounded(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_BODY_LIMIT)
