"""Label and field selectors: parsed once a request, then asked for each object."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import bad_request
from ..resources import Resource

Object = dict[str, Any]
Predicate = Callable[[Object], bool]
_TOKEN = re.compile(r"\s*(==|!=|=|,|\(|\)|!|<|>|[^\s=!,()<>]+)")
_EXPECTED = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True)
class Requirement:
    """One term of a label selector; `operator` is exists, absent, in, notin, gt or lt."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.operator in ("exists", "absent"):
            return (self.key in labels) == (self.operator == "exists")
        if self.operator == "in":
            return labels.get(self.key) in self.values
        if self.operator == "notin":
            return self.key not in labels or labels[self.key] not in self.values
        try:
            actual, limit = int(labels[self.key]), int(next(iter(self.values)))
        except (KeyError, ValueError):
            return False
        return actual > limit if self.operator == "gt" else actual < limit


class _Tokens:
    def __init__(self, text: str) -> None:
        self.found = _TOKEN.findall(text)
        self.position = 0

    def peek(self) -> str:
        return self.found[self.position] if self.position < len(self.found) else ""

    def take(self) -> str:
        token = self.peek()
        self.position += 1
        return token


def _refuse(token: str, expected: str) -> Exception:
    return bad_request(f"unable to parse requirement: found '{token}', expected: {expected}")


def parse_labels(text: str) -> list[Requirement]:
    """The terms of a label selector; 400 with the server's text when it cannot be read."""
    tokens = _Tokens(text)
    found: list[Requirement] = []
    while tokens.peek():
        found.append(_requirement(tokens))
        separator = tokens.take()
        if separator and separator != ",":
            raise bad_request(f"found '{separator}', expected: ',' or 'end of string'")
        if separator and not tokens.peek():
            raise bad_request("found '', expected: identifier after ','")
    return found


def _requirement(tokens: _Tokens) -> Requirement:
    token = tokens.take()
    if token == "!":
        return Requirement(_identifier(tokens.take()), "absent")
    key = _identifier(token)
    operator = tokens.peek()
    if operator in ("", ","):
        return Requirement(key, "exists")
    tokens.take()
    if operator in ("=", "==", "!="):
        value = "" if tokens.peek() in ("", ",") else tokens.take()
        return Requirement(key, "notin" if operator == "!=" else "in", frozenset((value,)))
    if operator in ("in", "notin"):
        return Requirement(key, operator, _values(tokens))
    if operator in ("gt", "lt", ">", "<"):
        return Requirement(key, {">": "gt", "<": "lt"}.get(operator, operator), frozenset((tokens.take(),)))
    raise _refuse(operator, _EXPECTED)


def _identifier(token: str) -> str:
    if not token or token in ("=", "==", "!=", ",", "(", ")", "<", ">", "!"):
        raise _refuse(token, "!, identifier, or 'end of string'")
    return token


def _values(tokens: _Tokens) -> frozenset[str]:
    if tokens.take() != "(":
        raise _refuse(tokens.found[tokens.position - 1] if tokens.position <= len(tokens.found) else "", "'('")
    found: list[str] = []
    while True:
        token = tokens.take()
        if token == ")":
            return frozenset(found) if found else frozenset(("",))
        if not token:
            raise _refuse(token, "',' or ')'")
        if token != ",":
            found.append(token)


@dataclass(frozen=True)
class FieldTerm:
    field: str
    value: str
    is_equal: bool


def parse_fields(text: str) -> list[FieldTerm]:
    """The terms of a field selector; a backslash escapes comma, equals sign and itself."""
    found = []
    for part in re.split(r"(?<!\\),", text):
        if not part:
            continue
        match = re.match(r"((?:\\.|[^=!\\])+)(!=|==|=)(.*)", part, re.S)
        if not match:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        value = re.sub(r"\\(.)", r"\1", match[3])
        found.append(FieldTerm(match[1].strip(), value, match[2] != "!="))
    return found


def _path(*keys: str) -> Callable[[Object], str]:
    def read(obj: Object) -> str:
        value: Any = obj
        for key in keys:
            value = (value or {}).get(key)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return read


def _paths(*paths: str) -> dict[str, Callable[[Object], str]]:
    return {path: _path(*path.split(".")) for path in paths}


def _event_source(event: Object) -> str:
    return (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""


_COMMON = _paths("metadata.name", "metadata.namespace")
_INVOLVED = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
FIELDS: dict[str, dict[str, Callable[[Object], str]]] = {
    "pods": _paths(
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "events": {
        **_paths(*(f"involvedObject.{key}" for key in _INVOLVED), "reason", "type", "reportingComponent"),
        "source": _event_source,
    },
    "jobs.batch": {"status.successful": lambda job: str((job.get("status") or {}).get("succeeded", 0))},
    "namespaces": _paths("status.phase"),
    "nodes": _paths("spec.unschedulable"),
    "secrets": _paths("type"),
    "services": _paths("spec.clusterIP", "spec.type"),
}


def _reader(resource: Resource, field: str) -> Callable[[Object], str]:
    own = FIELDS.get(resource.name, {})
    reader = _COMMON.get(field) or own.get(field)
    if reader:
        return reader
    if resource.name == "jobs.batch":
        raise bad_request(f'field label "{field}" not supported for Job')
    if own or resource.custom:
        raise bad_request(f"field label not supported: {field}")
    known = '"metadata.name", "metadata.namespace"'
    raise bad_request(f'"{field}" is not a known field selector: only {known}')


def selector(resource: Resource, labels: str, fields: str) -> Predicate | None:
    """Whether an object is selected; None when everything is."""
    requirements = parse_labels(labels)
    terms = [(_reader(resource, term.field), term.value, term.is_equal) for term in parse_fields(fields)]
    if not requirements and not terms:
        return None

    def is_selected(obj: Object) -> bool:
        found = obj["metadata"].get("labels") or {}
        return all(requirement.matches(found) for requirement in requirements) and all(
            (read(obj) == value) == is_equal for read, value, is_equal in terms
        )

    return is_selected


def selected_name(fields: str) -> str | None:
    """The name a field selector demands, which makes a list a single look-up."""
    if "metadata.name" not in fields:
        return None
    return next((t.value for t in parse_fields(fields) if t.field == "metadata.name" and t.is_equal), None)
