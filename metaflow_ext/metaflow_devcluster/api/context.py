"""What every handler works with, and the request and reply it turns one into the other. No HTTP library here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..resources import Resource, Resources
from ..store import Store
from .admission import Admission
from .agent import NodeAgent
from .definitions import Definitions
from .requests import Answer
from .schema import Schemas
from .tables import Tables, partial_metadata

Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request: `path` is below the secret prefix, `headers` are read case-insensitively by the server."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    answer: Answer = field(default_factory=Answer)
    repeated: Mapping[str, list[str]] = field(default_factory=dict)

    def values(self, name: str) -> list[str]:
        """All values of a query parameter that may be repeated, such as `command`."""
        return self.repeated.get(name) or ([self.query[name]] if name in self.query else [])


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent back: an object, or `text` where the answer is none."""

    code: int = 200
    body: Object | None = None
    text: bytes | None = None
    content_type: str = "application/json"
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def payload(self) -> bytes:
        return self.text if self.text is not None else encode(self.body)


def encode(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def success(resource: Resource, name: str, uid: str) -> Object:
    """The Status of a deletion that left nothing behind."""
    details: Object = {"name": name}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


@dataclass
class Api:
    """The parts of the API server; `agent` is None in a cluster without a node."""

    store: Store
    admission: Admission
    tables: Tables
    definitions: Definitions
    agent: NodeAgent | None = None

    @property
    def schemas(self) -> Schemas:
        return self.admission.schemas

    @property
    def resources(self) -> Resources:
        return self.store.resources

    def shown(self, resource: Resource, obj: Object, request: Request, code: int = 200) -> Reply:
        """One object in the form the client accepts."""
        if request.answer.is_table:
            include = request.query.get("includeObject", "Metadata")
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return Reply(code=code, body=self.tables.table(resource, [obj], meta, include=include))
        if request.answer.is_partial:
            return Reply(code=code, body=partial_metadata(obj))
        return Reply(code=code, body=obj)
