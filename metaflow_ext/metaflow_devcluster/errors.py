"""The refusals of a Kubernetes API server, with the texts and Status bodies that clients match on.

Everything that refuses a request raises `ApiError`; the server turns it into the HTTP answer and controllers
put its message into Events, exactly as the real ones do. Nothing here knows about HTTP handling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True)
class Cause:
    """One entry of `details.causes`: what is wrong with which field (path in dotted form)."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


@dataclass(eq=False)
class ApiError(Exception):
    """A Status of kind Failure. `reason` may be empty: some webhooks answer without one."""

    code: int
    reason: str
    message: str
    details: Object = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    def status(self) -> Object:
        """The Status object that is sent as the body."""
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        body["code"] = self.code
        return body


class NotFound(ApiError):
    """404."""


class AlreadyExists(ApiError):
    """409 of a create."""


class Conflict(ApiError):
    """409 of an update or a precondition."""


class Expired(ApiError):
    """410: the wanted resource version is older than the history kept."""


def split(resource: str) -> tuple[str, str]:
    """`"jobs.batch"` to `("jobs", "batch")`; the core group is empty."""
    plural, _, group = resource.partition(".")
    return plural, group


def details(resource: str, name: str) -> Object:
    """`details` of a Status about one object, keys in the server's order."""
    plural, group = split(resource)
    found: Object = {"name": name} if name else {}
    if group:
        found["group"] = group
    if plural:
        found["kind"] = plural
    return found


def not_found(resource: str, name: str) -> NotFound:
    return NotFound(404, "NotFound", f'{resource} "{name}" not found', details(resource, name))


def no_such_path() -> NotFound:
    text = "the server could not find the requested resource"
    return NotFound(404, "NotFound", text)


def already_exists(resource: str, name: str, *, being_deleted: bool = False) -> AlreadyExists:
    prefix = "object is being deleted: " if being_deleted else ""
    message = f'{prefix}{resource} "{name}" already exists'
    return AlreadyExists(409, "AlreadyExists", message, details(resource, name))


def conflict(resource: str, name: str, text: str) -> Conflict:
    message = f'Operation cannot be fulfilled on {resource} "{name}": {text}'
    return Conflict(409, "Conflict", message, details(resource, name))


def stale(resource: str, name: str) -> Conflict:
    text = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, text)


def expired(wanted: int, oldest: int) -> Expired:
    return Expired(410, "Expired", f"too old resource version: {wanted} ({oldest})")


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def forbidden(resource: str, name: str, text: str, *, causes: Sequence[Cause] = ()) -> ApiError:
    """403 as admission plug-ins give it; an unnamed object (generateName) is quoted as its prefix or left out."""
    subject = f'{resource} "{name}" is forbidden' if name else f"{resource} is forbidden"
    found = details(resource, name)
    if causes:
        found["causes"] = [cause_entry(cause) for cause in causes]
    return ApiError(403, "Forbidden", f"{subject}: {text}", found)


def cause_entry(cause: Cause) -> Object:
    entry: Object = {"reason": cause.reason, "message": cause.message}
    if cause.field:
        entry["field"] = cause.field
    return entry


def invalid(kind: str, group: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with every broken rule; one rule stands alone, more are bracketed, as the server aggregates them."""
    texts = list(dict.fromkeys(str(cause) for cause in causes))
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    found: Object = {"name": name} if name else {}
    if group:
        found["group"] = group
    found["kind"] = kind
    found["causes"] = [cause_entry(cause) for cause in causes]
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {text}', found)


def invalid_options(kind: str, causes: Sequence[Cause]) -> ApiError:
    """422 about query parameters (`ListOptions.meta.k8s.io "" is invalid: ...`)."""
    return invalid(kind, "meta.k8s.io", "", causes)


def method_not_allowed() -> ApiError:
    text = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", text)


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return ApiError(415, "UnsupportedMediaType", text)


def not_acceptable(accepted: Sequence[str]) -> ApiError:
    text = f"only the following media types are accepted: {', '.join(accepted)}"
    return ApiError(406, "NotAcceptable", text)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def internal(message: str) -> ApiError:
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def webhook_denied(webhook: str, text: str, *, code: int = 403, reason: str = "Forbidden") -> ApiError:
    return ApiError(code, reason, f'admission webhook "{webhook}" denied the request: {text}')
