"""From the bytes of a request to the object they describe: media types, kinds, duplicate and unknown fields.

The texts are those of the real decoder. Nothing here applies defaults or rules.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import yaml

from .. import errors
from ..resources import Resource
from . import protobuf
from .schema import META, REF, Schemas, Undecodable, prune, typed

Object = dict[str, Any]
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ACCEPTED = (JSON, YAML, PROTOBUF, "application/cbor")
_SUMMARY = 30


@dataclass
class Decoded:
    """An object and what was dropped from it: texts like `unknown field "spec.bogus"`."""

    object: Object
    dropped: list[str] = field(default_factory=list)


class _Repeated(dict[str, Any]):
    """A JSON object in which some keys came twice."""

    repeated: tuple[str, ...] = ()


def _pairs(pairs: list[tuple[str, Any]]) -> Object:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    marked = _Repeated(found)
    names = [name for name, _ in pairs]
    marked.repeated = tuple(dict.fromkeys(name for name in names if names.count(name) > 1))
    return marked


def duplicates(value: Any, path: str = "") -> list[str]:
    """Paths of the fields that were given more than once."""
    if isinstance(value, list):
        return [found for i, item in enumerate(value) for found in duplicates(item, f"{path}[{i}]")]
    if not isinstance(value, dict):
        return []
    prefix = f"{path}." if path else ""
    own = [prefix + name for name in getattr(value, "repeated", ())]
    return own + [found for key, item in value.items() for found in duplicates(item, prefix + key)]


def parse(body: bytes, content_type: str, kind: str) -> Any:
    """The plain value in a body; `kind` is only for the error text."""
    media = content_type.partition(";")[0].strip().lower() or JSON
    if media == PROTOBUF:
        try:
            return protobuf.decode(body)
        except (ValueError, KeyError) as error:
            raise _unrecognized(kind, str(error), body) from error
    if media == JSON:
        return parse_json(body, kind)
    if media == YAML:
        try:
            return yaml.load(body, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except yaml.YAMLError as error:
            raise _unrecognized(kind, f"error converting YAML to JSON: {error}", body) from error
    raise errors.unsupported_media_type(ACCEPTED)


def parse_json(body: bytes, kind: str) -> Any:
    """JSON, with repeated keys remembered for `duplicates`."""
    try:
        value = json.loads(body, object_pairs_hook=_pairs)
    except ValueError as error:
        text = f"couldn't get version/kind; json parse error: {_go_parse_error(body, error)}"
        raise _unrecognized(kind, text, body) from error
    return value


def _go_parse_error(body: bytes, error: ValueError) -> str:
    text = body.decode("utf-8", "replace").rstrip()
    position = getattr(error, "pos", len(text))
    if position >= len(text):
        return "unexpected end of JSON input"
    return f"invalid character {text[position]!r} looking for beginning of value"


def _unrecognized(kind: str, text: str, body: bytes) -> errors.ApiError:
    summary = body.decode("utf-8", "replace")
    if not summary:
        summary = "<empty>"
    elif len(summary) > _SUMMARY:
        summary = f"{summary[:_SUMMARY]} ..."
    message = f"the object provided is unrecognized (must be of type {kind}): {text} ({summary})"
    return errors.bad_request(message)


def identified(value: Any, resource: Resource, body: bytes) -> Object:
    """The value as an object of the resource's kind; refused when it says to be something else."""
    if not isinstance(value, dict):
        text = f"couldn't get version/kind; json parse error: json: cannot unmarshal {_json_type(value)} into Go value"
        raise _unrecognized(resource.kind, f"{text} of type struct {{ APIVersion string; Kind string }}", body)
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if resource.custom and not (kind and api_version):
        missing = "Kind" if not kind else "apiVersion"
        text = f"Object '{missing}' is missing in '{body.decode('utf-8', 'replace')}'"
        raise _unrecognized(resource.kind, text, body)
    if (kind or resource.kind) != resource.kind:
        version = str(api_version or resource.api_version).rpartition("/")[2]
        text = f"converting (v1.{kind}) to (v1.{resource.kind}): unknown conversion"
        message = f'{kind} in version "{version}" cannot be handled as a {resource.kind}: {text}'
        raise errors.bad_request(message)
    if (api_version or resource.api_version) != resource.api_version:
        text = f"the API version in the data ({api_version}) does not match the expected API version "
        raise errors.bad_request(f"{text}({resource.api_version})")
    return {**value, "kind": resource.kind, "apiVersion": resource.api_version}


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "number"


def conform(schemas: Schemas, resource: Resource, value: Object) -> Decoded:
    """The object with only known fields and, for built-ins, Go's types; drops are listed, never raised."""
    repeated = [f'duplicate field "{path}"' for path in duplicates(value)]
    node = schemas.root(resource.group, resource.version, resource.kind)
    if node is None:
        return Decoded(value, repeated)
    pruned, unknown = prune(schemas, node, value)
    dropped = [*repeated, *(f'unknown field "{path}"' for path in unknown)]
    if not resource.custom:
        try:
            pruned = typed(schemas, node, pruned)
        except Undecodable as error:
            raise errors.bad_request(f"{_handled_as(resource)}: {error}") from error
    elif pruned.get("metadata") is not None:
        try:
            pruned = {**pruned, "metadata": typed(schemas, {"$ref": f"{REF}{META}ObjectMeta"}, pruned["metadata"])}
        except Undecodable as error:
            raise errors.bad_request(f"{_handled_as(resource)}: {error}") from error
    return Decoded(pruned, dropped)


def options_body(schemas: Schemas, body: bytes, content_type: str, kind: str, group: str = "") -> Object:
    """A body that is no object of a resource, such as DeleteOptions: known fields only, {} when there is none."""
    if not body.strip():
        return {}
    value = parse(body, content_type, kind)
    node = schemas.root(group, "v1", kind) or {}
    try:
        found = typed(schemas, node, prune(schemas, node, value)[0])
    except Undecodable as error:
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from error
    return found if isinstance(found, dict) else {}


def _handled_as(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def settle(decoded: Decoded, resource: Resource, field_validation: str) -> list[str]:
    """Apply fieldValidation: Strict refuses what was dropped, Warn gives the warnings, Ignore nothing."""
    if not decoded.dropped or field_validation == "Ignore":
        return []
    if field_validation == "Strict":
        text = ", ".join(decoded.dropped)
        raise errors.bad_request(f"{_handled_as(resource)}: strict decoding error: {text}")
    return decoded.dropped
