"""CustomResourceDefinitions: serve what they define, with its schema and columns, and stop when they go."""

from __future__ import annotations

from typing import Any

from ..resources import Resource, Resources, Subresource
from ..store import Store, timestamp
from .schema import META, REF, Schemas
from .tables import Tables, printer_columns

Object = dict[str, Any]
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_CONDITIONS = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


def resource_of(definition: Object) -> Resource:
    """The served resource of a definition, in its storage version."""
    spec, names = definition["spec"], definition["spec"]["names"]
    version = next(v for v in spec["versions"] if v.get("storage"))
    subresources: tuple[Subresource, ...] = ()
    if "status" in (version.get("subresources") or {}):
        subresources = (Subresource(name="status", kind=names["kind"], verbs=("get", "patch", "update")),)
    return Resource(
        plural=names["plural"],
        kind=names["kind"],
        group=spec["group"],
        version=version["name"],
        singular=names.get("singular") or names["kind"].lower(),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=subresources,
        custom=True,
        has_generation=True,
    )


class Definitions:
    """Keeps the table of resources, the schemas and the columns in step with the definitions in the store."""

    def __init__(self, store: Store, schemas: Schemas, tables: Tables) -> None:
        self._store = store
        self._schemas = schemas
        self._tables = tables

    @property
    def _resources(self) -> Resources:
        return self._store.resources

    def serve(self, definition: Object) -> None:
        """Begin, or go on with changes, serving what a definition defines; writes its status."""
        resource = resource_of(definition)
        version = next(v for v in definition["spec"]["versions"] if v.get("storage"))
        is_new = resource.name not in self._resources
        self._resources.add(resource)
        node = (version.get("schema") or {}).get("openAPIV3Schema") or {"x-kubernetes-preserve-unknown-fields": True}
        self._schemas.add(resource.group, resource.version, resource.kind, _with_metadata(node))
        columns = version.get("additionalPrinterColumns") or ()
        self._tables.register(resource.name, printer_columns(columns))
        if is_new:
            self._store.begin(resource.name)
        self._store.modify(DEFINITIONS, None, definition["metadata"]["name"], _establish, status_only=True)

    def withdraw(self, definition: Object) -> None:
        """Remove what a definition defined, objects and all."""
        resource = resource_of(definition)
        for obj in self._store.list(resource.name):
            self._store.remove(resource.name, obj["metadata"].get("namespace"), obj["metadata"]["name"])
        self._resources.discard(resource.name)
        self._schemas.discard(resource.group, resource.version, resource.kind)


def _with_metadata(node: Object) -> Object:
    return {**node, "properties": {**node.get("properties", {}), "metadata": {"$ref": f"{REF}{META}ObjectMeta"}}}


def _establish(definition: Object) -> None:
    names = definition["spec"]["names"]
    if (definition.get("status") or {}).get("acceptedNames") == names:
        return
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": timestamp()}
        for kind, reason, message in _CONDITIONS
    ]
    stored = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")]
    definition["status"] = {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}
