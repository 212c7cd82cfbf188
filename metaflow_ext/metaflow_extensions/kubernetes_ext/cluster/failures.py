"""An answer or an exception in, one of our errors with plain words out. Pure.

What the server really writes was measured: a webhook's refusal and an exceeded quota are 403 like a missing permission, an
unknown kind is a 404 without a Status, a webhook that is down a 500.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Mapping
from typing import Any

from urllib3 import exceptions

from ..errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unavailable
from .requests import Request

_INSTALL = {
    "jobset.x-k8s.io": "https://jobset.sigs.k8s.io/docs/installation/",
    "workload.codeflare.dev": "https://project-codeflare.github.io/appwrapper/",
    "kueue.x-k8s.io": "https://kueue.sigs.k8s.io/docs/installation/",
}
# 403s that are not about who asks but about what is asked for.
_REFUSED_OBJECT = re.compile(
    r"admission webhook .* denied the request|exceeded quota|violates PodSecurity|ValidatingAdmissionPolicy"
    r"|error looking up service account|is being terminated|LimitRange|maximum .* usage per|minimum .* usage per|failed quota"
)
_TRANSIENT = {408, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 529}


def of_answer(request: Request, status: int, headers: Mapping[str, str], data: bytes, source: str) -> ClusterError:
    """The error that an answer with `status` >= 400 stands for. `source` says which configuration led to the server."""
    body = _status_body(data)
    message = str(body.get("message") or data[:300].decode(errors="replace")).strip()
    retry_after = _retry_after(headers, body)
    reason = str(body.get("reason") or "")
    kind, text = _meaning(request, status, reason, message, bool(body), source)
    return kind(text, status=status, reason=reason, body=body, retry_after=retry_after)


def of_status(request: Request, body: dict[str, Any], source: str) -> ClusterError:
    """The error of a Status object inside a watch."""
    code = body.get("code")
    return of_answer(request, code if isinstance(code, int) else 500, {}, json.dumps(body).encode(), source)


def of_page(request: Request, headers: Mapping[str, str]) -> ClusterError | None:
    """The error where something between us and the server (a captive portal, a log-in page) answers in its place, with success."""
    if not (headers.get("Content-Type") or "").lower().startswith("text/html"):
        return None
    return Unavailable(
        f"A web page came in place of the API server's answer to {request.verb} {request.resource.plural}. "
        "Does this network want you to log in first, or is there a proxy that does?"
    )


def of_exception(request: Request, error: Exception, host: str, source: str) -> ClusterError:
    """The error when there was no answer, or only a part of one."""
    where = f"The API server {_without_path(host)} ({source})"
    if isinstance(error, (exceptions.SSLError, ssl.SSLError)):
        certificate = _inner(error, ssl.SSLCertVerificationError)
        if certificate is not None:
            return ClusterError(
                f"{where} shows a certificate that can't be trusted: {certificate}. "
                "Is certificate-authority in the kubeconfig the one of this cluster, and is there no other server in between?",
                reason="CertificateNotTrusted",
            )
        return Unavailable(f"{where}: the encrypted connection failed: {error}")
    if isinstance(error, (exceptions.LocationParseError, exceptions.URLSchemeUnknown)):
        return ClusterError(f"{where} is not a valid URL: {error}")
    if isinstance(error, exceptions.NameResolutionError):
        return Unavailable(f"{where} can't be reached: its name can't be resolved. {_ASK}")
    if isinstance(error, exceptions.NewConnectionError):
        return Unavailable(f"{where} can't be reached: {_last_words(error)}. {_ASK}")
    if isinstance(error, exceptions.ConnectTimeoutError):
        return Unavailable(f"{where} can't be reached: no answer to the attempt to connect. {_ASK}")
    if isinstance(error, exceptions.ProxyError):
        return Unavailable(f"{where} can't be reached through the proxy: {_last_words(error)}.")
    if isinstance(error, (exceptions.ReadTimeoutError, TimeoutError)):
        return Unavailable(f"{where} did not answer in time ({request.verb} {request.resource.plural}).")
    return Unavailable(f"{where}: the connection broke ({request.verb} {request.resource.plural}): {_last_words(error)}.")


def _without_path(host: str) -> str:
    """What is behind the port may be a secret: the development cluster's server is found by it."""
    scheme, slashes, rest = host.partition("://")
    return f"{scheme}{slashes}{rest.partition('/')[0]}" if slashes else host


_ASK = "Is the cluster running, and is this the right context?"


def is_unknown_kind(error: ClusterError) -> bool:
    """A 404 because the server does not serve such objects at all."""
    return isinstance(error, NotFound) and error.reason == ""


def _meaning(
    request: Request, status: int, reason: str, message: str, has_status: bool, source: str
) -> tuple[type[ClusterError], str]:
    resource, name = request.resource, request.name
    thing = f"{resource.kind} {name}".strip() if request.verb != "list" else resource.plural
    there = f" in namespace {request.namespace}" if request.namespace else ""
    full = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
    if status == 401:
        return Forbidden, (
            f"The cluster does not accept the credentials of {source}: {message}. Log in again with your provider's tool."
        )
    if status == 403 and not _REFUSED_OBJECT.search(message):
        return Forbidden, (
            f"Not allowed to {request.verb} {full}{there}: {message}. "
            f'The Role of this user needs the verb "{request.verb}" on "{resource.plural}" in the API group "{resource.group}".'
        )
    if status == 404:
        if not has_status and resource.plural:
            hint = _INSTALL.get(resource.group)
            return NotFound, (
                f"{resource.kind} is not installed on this cluster: the server does not know {full}/{resource.version}. "
                + (f"Have it installed ({hint})" if hint else "Have it installed")
                + f", or choose another cluster (now {source})."
            )
        if message.startswith(f'namespaces "{request.namespace}"'):
            return NotFound, f"There is no namespace {request.namespace} on this cluster (now {source}). Is it the right one?"
        return NotFound, f"There is no {thing}{there}: {message}"
    if status == 409:
        return Conflict, f"{thing}{there}: {message}"
    if status in _TRANSIENT or status > 500:
        return Unavailable, f"The API server could not {request.verb} {full} now: {status} {message or reason}"
    if status in (400, 403, 405, 413, 415, 422):
        return Rejected, f"The cluster refuses {thing}{there}: {message}"
    return ClusterError, f"The API server answered {request.verb} {full} with {status}: {message}"


def _status_body(data: bytes) -> dict[str, Any]:
    """The Status object, or {} where the answer is none (a proxy's page, "404 page not found")."""
    try:
        body = json.loads(data)
    except ValueError:
        return {}
    return body if isinstance(body, dict) and body.get("kind") == "Status" else {}


def _retry_after(headers: Mapping[str, str], body: Mapping[str, Any]) -> float | None:
    """Seconds; the header's form with a date is not used by Kubernetes and read as absent."""
    details = body.get("details")
    in_body = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    for text in (headers.get("Retry-After"), in_body):
        try:
            return max(0.0, float(text)) if text is not None else None
        except (TypeError, ValueError):
            continue
    return None


def _inner(error: BaseException, kind: type[BaseException]) -> BaseException | None:
    """The error of `kind` that `error` wraps in its arguments, its cause or its context."""
    seen: list[BaseException] = [error]
    for one in seen:
        if isinstance(one, kind):
            return one
        wrapped = [*one.args, one.__cause__, one.__context__]
        seen += [other for other in wrapped if isinstance(other, BaseException) and other not in seen]
    return None


def _last_words(error: BaseException) -> str:
    """ "Connection refused" out of "HTTPConnection(host=...): Failed to establish a new connection: [Errno 111] Connection refused"."""
    inner = _inner(error, OSError)
    words = getattr(inner, "strerror", None) or str(error)
    return str(words).rsplit(": ", 1)[-1]


def unknown_fields(error: ClusterError) -> tuple[str, ...]:
    """Dotted paths of the fields that a strict create was refused for; list indexes left out. () for any other error."""
    found = re.findall(r'unknown field "([^"]+)"', str(error.body.get("message") or ""))
    return tuple(dict.fromkeys(re.sub(r"\[\d+\]", "", path) for path in found))


def warnings(header: str) -> tuple[str, ...]:
    """The texts of the Warning headers of an answer, joined by commas as HTTP libraries do: `299 - "text"`."""
    return tuple(re.sub(r"\\(.)", r"\1", text) for text in re.findall(r'299 \S+ "((?:[^"\\]|\\.)*)"', header))
