"""Who may do what: the one user of this cluster everything, impersonated service accounts and tokens nothing.

Access reviews answer by the same rule, so what they say is what happens.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import secrets
from typing import Any

from .. import errors
from ..errors import Cause
from ..store import timestamp
from .context import Api, Reply, Request
from .decoding import conform, identified, options_body, parse
from .requests import Target

Object = dict[str, Any]
_SERVICE_ACCOUNT = "system:serviceaccount:"
_KEY = secrets.token_bytes(32)
_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_SHORTEST_TOKEN = 600


def is_powerless(user: str) -> bool:
    return user.startswith((_SERVICE_ACCOUNT, "system:anonymous"))


def check_impersonation(target: Target, request: Request) -> None:
    """Refuse what an impersonated user without rights asks for, with the authorizer's text."""
    user = request.headers.get("Impersonate-User", "")
    if not user or not is_powerless(user):
        return
    resource = target.resource
    what = f"{resource.plural}/{target.subresource}" if target.subresource else resource.plural
    verb = _VERBS.get(request.method, request.method.lower())
    if not target.name and verb in ("get", "delete"):
        verb = {"get": "list", "delete": "deletecollection"}[verb]
    where = f' in the namespace "{target.namespace}"' if target.namespace else " at the cluster scope"
    text = f'User "{user}" cannot {verb} resource "{what}" in API group "{resource.group}"{where}'
    raise errors.forbidden(resource.name, target.name, text)


def review(api: Api, target: Target, request: Request) -> Reply:
    """Answer a SelfSubjectAccessReview or SubjectAccessReview."""
    resource = target.resource
    value = identified(parse(request.body, request.content_type, resource.kind), resource, request.body)
    obj = conform(api.schemas, resource, value).object
    spec = obj.get("spec") or {}
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = Cause("spec.resourceAttributes", f"Invalid value: null: {text}")
        raise errors.invalid(resource.kind, resource.group, "", [cause])
    is_self = resource.kind == "SelfSubjectAccessReview"
    user = request.headers.get("Impersonate-User", "") if is_self else spec.get("user", "")
    status: Object = {"allowed": not is_powerless(user)}
    if status["allowed"]:
        status["reason"] = "the development cluster has one user, who may do everything"
    meta = {**(obj.get("metadata") or {}), "creationTimestamp": None}
    return Reply(code=201, body={**obj, "metadata": meta, "status": status})


def token(api: Api, target: Target, request: Request) -> Reply:
    """Answer a TokenRequest with a signed JWT; nothing here asks for tokens, clients only carry them."""
    account = api.store.get("serviceaccounts", target.namespace, target.name)
    group = "authentication.k8s.io"
    value = options_body(api.schemas, request.body, request.content_type, "TokenRequest", group)
    spec = {"audiences": ["https://kubernetes.default.svc"], "expirationSeconds": 3600, **(value.get("spec") or {})}
    seconds = spec["expirationSeconds"]
    if seconds < _SHORTEST_TOKEN:
        text = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        cause = Cause("spec.expirationSeconds", text)
        raise errors.invalid("TokenRequest", group, target.name, [cause])
    now = datetime.datetime.now(datetime.timezone.utc)
    expires = now + datetime.timedelta(seconds=seconds)
    claims = {
        "sub": f"{_SERVICE_ACCOUNT}{target.namespace}:{target.name}",
        "aud": spec["audiences"],
        "iat": int(now.timestamp()),
        "exp": int(expires.timestamp()),
        "uid": account["metadata"]["uid"],
    }
    status = {"token": _jwt(claims), "expirationTimestamp": timestamp(expires)}
    meta = {"name": target.name, "namespace": target.namespace, "creationTimestamp": timestamp(now)}
    kind = {"kind": "TokenRequest", "apiVersion": f"{group}/v1"}
    return Reply(code=201, body={**kind, "metadata": meta, "spec": spec, "status": status})


def _jwt(claims: Object) -> str:
    head, body = (_part(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    signature = hmac.new(_KEY, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{_part(signature)}"


def _part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
