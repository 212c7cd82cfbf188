"""What a request asks for: the resource, object and subresource in its path, its options, and how to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .. import errors
from ..errors import Cause
from ..resources import Resource, Resources

Object = dict[str, Any]
JSON, YAML = "application/json", "application/yaml"
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_ANSWERS = (JSON, YAML, "application/vnd.kubernetes.protobuf", "application/cbor")


@dataclass(frozen=True, kw_only=True)
class Target:
    """The object or collection a path leads to; `name` is empty for a collection."""

    resource: Resource
    namespace: str | None
    name: str = ""
    subresource: str = ""


class UnknownPath(Exception):
    """Outside of every served group, or no resource of a custom one: answered as plain text, not as a Status."""


def target_of(resources: Resources, path: str) -> Target:
    """Read a path below /api or /apis; UnknownPath or the 404 Status of an unserved resource."""
    parts = [part for part in path.split("/") if part]
    if parts[0] == "api":
        group, rest = "", parts[1:]
    else:
        group, rest = parts[1], parts[2:]
    version, rest = rest[0], rest[1:]
    namespace = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    resource = resources.at(group, version, rest[0])
    unknown = _unknown_path(resources, group, version)
    if resource is None or (namespace is not None and not resource.namespaced) or len(rest) > 3:
        raise unknown
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and all(sub.name != subresource for sub in resource.subresources):
        raise errors.no_such_path()
    if name and resource.namespaced and namespace is None:
        raise unknown
    if not resource.namespaced:
        namespace = None
    return Target(resource=resource, namespace=namespace, name=name, subresource=subresource)


def _unknown_path(resources: Resources, group: str, version: str) -> Exception:
    """Kubernetes answers for unknown resources of its own groups with a Status, for those of custom ones with plain text."""
    is_built_in = any(not known.custom for known in resources if (known.group, known.version) == (group, version))
    return errors.no_such_path() if is_built_in else UnknownPath()


def whole_number(query: Mapping[str, str], key: str) -> int | None:
    """A number in the query, None when it is not given; 400 with Go's text when it is none."""
    text = query.get(key)
    if not text:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def is_true(value: str | None) -> bool:
    return value in _TRUE


@dataclass(frozen=True, kw_only=True)
class WriteOptions:
    """dryRun, fieldValidation, fieldManager and force of a writing request."""

    dry_run: bool = False
    field_validation: str = "Warn"
    manager: str = ""
    force: bool = False


def write_options(query: Mapping[str, str], kind: str) -> WriteOptions:
    """`kind` is the options' kind in the refusal, such as CreateOptions."""
    dry_run, validation = query.get("dryRun", ""), query.get("fieldValidation") or "Warn"
    causes = dry_run_causes([dry_run] if dry_run else [])
    if validation not in ("Ignore", "Warn", "Strict"):
        listed = 'supported values: "", "Ignore", "Strict", "Warn"'
        text = f'Unsupported value: "{validation}": {listed}'
        causes.append(Cause("fieldValidation", text, "FieldValueNotSupported"))
    if causes:
        raise errors.invalid_options(kind, causes)
    manager = query.get("fieldManager", "")
    force = is_true(query.get("force"))
    return WriteOptions(dry_run=bool(dry_run), field_validation=validation, manager=manager, force=force)


def dry_run_causes(values: list[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    listed = " ".join(f'"{value}"' for value in values)
    text = f'Unsupported value: [{listed}]: supported values: "All"'
    return [Cause("dryRun", text, "FieldValueNotSupported")]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How the client wants to be answered: media type, and a Table or bare metadata instead of objects."""

    media: str = JSON
    form: str = ""

    @property
    def is_table(self) -> bool:
        return self.form == "Table"

    @property
    def is_partial(self) -> bool:
        return self.form.startswith("PartialObjectMetadata")


_PLAIN = Answer()


def negotiate(accept: str) -> Answer:
    """The first acceptable way in the Accept header; 406 when there is none."""
    if not accept or accept == JSON:
        return _PLAIN
    for entry in accept.split(","):
        media, *parameters = (part.strip() for part in entry.split(";"))
        options = dict(parameter.partition("=")[::2] for parameter in parameters)
        form = options.get("as", "")
        if media in (JSON, "*/*", "application/*"):
            if form and (options.get("v") != "v1" or options.get("g") != "meta.k8s.io"):
                continue
            return Answer(form=form)
        if media == YAML and not form:
            return Answer(media=YAML)
    raise errors.not_acceptable(_ANSWERS)
