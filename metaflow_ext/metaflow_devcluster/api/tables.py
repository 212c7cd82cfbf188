"""Tables, as kubectl asks for them: the columns of each kind and the cells of each object."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from ..resources import Resource
from .paths import json_path
from .table_cells import (
    age,
    completions,
    duration,
    event_age,
    event_count,
    event_source,
    job_status,
    node_address,
    node_roles,
    node_status,
    pod_ready,
    pod_restarts,
    pod_status,
    quota_column,
    selector_text,
    service_external,
    service_ports,
)

Object = dict[str, Any]
Now = datetime.datetime
Cell = Callable[[Object, Now], Any]
Column = tuple[str, str, int, Cell]


def _name(obj: Object, _: Now) -> Any:
    return obj["metadata"]["name"]


def _age(obj: Object, now: Now) -> str:
    return age(obj["metadata"].get("creationTimestamp"), now)


def _get(*keys: str, default: Any = "<none>") -> Cell:
    def read(obj: Object, _: Now) -> Any:
        value: Any = obj
        for key in keys:
            value = (value or {}).get(key)
        return default if value in (None, "") else value

    return read


def _count(key: str) -> Cell:
    return lambda obj, _: len(obj.get(key) or ()) + (len(obj.get("binaryData") or ()) if key == "data" else 0)


def _joined(key: str) -> Cell:
    def read(job: Object, _: Now) -> str:
        return ",".join(c.get(key, "") for c in job["spec"]["template"]["spec"].get("containers") or ())

    return read


def _pure(cell: Callable[[Object], Any]) -> Cell:
    return lambda obj, _: cell(obj)


def _object(event: Object, _: Now) -> str:
    involved = event.get("involvedObject") or {}
    return f"{(involved.get('kind') or '').lower()}/{involved.get('name') or ''}"


_NAME: Column = ("Name", "string", 0, _name)
_AGE: Column = ("Age", "string", 0, _age)
_NONE = "<none>"
COLUMNS: dict[str, Sequence[Column]] = {
    "pods": (
        _NAME,
        ("Ready", "string", 0, _pure(pod_ready)),
        ("Status", "string", 0, _pure(pod_status)),
        ("Restarts", "string", 0, pod_restarts),
        _AGE,
        ("IP", "string", 1, _get("status", "podIP")),
        ("Node", "string", 1, _get("spec", "nodeName")),
        ("Nominated Node", "string", 1, _get("status", "nominatedNodeName")),
        ("Readiness Gates", "string", 1, lambda *_: _NONE),
    ),
    "jobs.batch": (
        _NAME,
        ("Status", "string", 0, _pure(job_status)),
        ("Completions", "string", 0, _pure(completions)),
        ("Duration", "string", 0, duration),
        _AGE,
        ("Containers", "string", 1, _joined("name")),
        ("Images", "string", 1, _joined("image")),
        ("Selector", "string", 1, lambda job, _: selector_text(job["spec"].get("selector"))),
    ),
    "services": (
        _NAME,
        ("Type", "string", 0, _get("spec", "type")),
        ("Cluster-IP", "string", 0, _get("spec", "clusterIP")),
        ("External-IP", "string", 0, _pure(service_external)),
        ("Port(s)", "string", 0, _pure(service_ports)),
        _AGE,
        ("Selector", "string", 1, lambda s, _: selector_text({"matchLabels": s["spec"].get("selector") or {}})),
    ),
    "events": (
        ("Last Seen", "string", 0, event_age),
        ("Type", "string", 0, _get("type", default="")),
        ("Reason", "string", 0, _get("reason", default="")),
        ("Object", "string", 0, _object),
        ("Subobject", "string", 1, _get("involvedObject", "fieldPath", default="")),
        ("Source", "string", 1, _pure(event_source)),
        ("Message", "string", 0, lambda event, _: (event.get("message") or "").strip()),
        ("First Seen", "string", 1, lambda e, now: age(e.get("firstTimestamp") or e.get("eventTime"), now)),
        ("Count", "string", 1, _pure(event_count)),
        ("Name", "string", 1, _name),
    ),
    "namespaces": (_NAME, ("Status", "string", 0, _get("status", "phase", default="")), _AGE),
    "nodes": (
        _NAME,
        ("Status", "string", 0, _pure(node_status)),
        ("Roles", "string", 0, _pure(node_roles)),
        _AGE,
        ("Version", "string", 0, _get("status", "nodeInfo", "kubeletVersion")),
        ("Internal-IP", "string", 1, lambda node, _: node_address(node, "InternalIP")),
        ("External-IP", "string", 1, lambda node, _: node_address(node, "ExternalIP")),
        ("OS-Image", "string", 1, _get("status", "nodeInfo", "osImage")),
        ("Kernel-Version", "string", 1, _get("status", "nodeInfo", "kernelVersion")),
        ("Container-Runtime", "string", 1, _get("status", "nodeInfo", "containerRuntimeVersion")),
    ),
    "configmaps": (_NAME, ("Data", "string", 0, _count("data")), _AGE),
    "secrets": (_NAME, ("Type", "string", 0, _get("type")), ("Data", "string", 0, _count("data")), _AGE),
    "serviceaccounts": (_NAME, _AGE),
    "persistentvolumeclaims": (
        _NAME,
        ("Status", "string", 0, _get("status", "phase", default="")),
        ("Volume", "string", 0, _get("spec", "volumeName", default="")),
        ("Capacity", "string", 0, _get("status", "capacity", "storage", default="")),
        ("Access Modes", "string", 0, lambda claim, _: ",".join((claim.get("status") or {}).get("accessModes") or ())),
        ("StorageClass", "string", 0, _get("spec", "storageClassName", default="")),
        ("VolumeAttributesClass", "string", 0, _get("spec", "volumeAttributesClassName", default="<unset>")),
        _AGE,
        ("VolumeMode", "string", 1, _get("spec", "volumeMode", default="<unset>")),
    ),
    "resourcequotas": (
        _NAME,
        ("Request", "string", 0, lambda quota, _: quota_column(quota, limits=False)),
        ("Limit", "string", 0, lambda quota, _: quota_column(quota, limits=True)),
        _AGE,
    ),
    "leases.coordination.k8s.io": (_NAME, ("Holder", "string", 0, _get("spec", "holderIdentity", default="")), _AGE),
    "priorityclasses.scheduling.k8s.io": (
        _NAME,
        ("Value", "integer", 0, _get("value", default=0)),
        ("Global-Default", "boolean", 0, _get("globalDefault", default=False)),
        _AGE,
        ("PreemptionPolicy", "string", 0, _get("preemptionPolicy", default="")),
    ),
    "customresourcedefinitions.apiextensions.k8s.io": (
        _NAME,
        ("Created At", "date", 0, _get("metadata", "creationTimestamp")),
    ),
}


def printer_columns(described: Sequence[Object]) -> tuple[Column, ...]:
    """Columns of a custom kind from its additionalPrinterColumns; missing values are null cells."""
    found: list[Column] = [_NAME]
    for column in described:
        found.append((column["name"], column["type"], column.get("priority", 0), _printed(column)))
    return tuple(found) if described else (_NAME, _AGE)


def _printed(column: Object) -> Cell:
    read = json_path(column["jsonPath"])

    def cell(obj: Object, now: Now) -> Any:
        value = read(obj)
        if value is None:
            return None
        if column["type"] == "date":
            return age(value, now)
        if column["type"] == "string" and not isinstance(value, str):
            return ("true" if value else "false") if isinstance(value, bool) else str(value)
        return value

    return cell


JOBSET_COLUMNS = printer_columns(
    (
        {"name": "TerminalState", "type": "string", "jsonPath": ".status.terminalState"},
        {"name": "Restarts", "type": "string", "jsonPath": ".status.restarts"},
        {"name": "Completed", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Completed")].status'},
        {"name": "Suspended", "type": "string", "jsonPath": ".spec.suspend"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    )
)


class Tables:
    """Which columns each resource has; CRDs register theirs."""

    def __init__(self) -> None:
        self._custom: dict[str, Sequence[Column]] = {}

    def register(self, resource: str, columns: Sequence[Column]) -> None:
        self._custom[resource] = columns

    def columns(self, resource: Resource) -> Sequence[Column]:
        if resource.kind == "JobSet":
            return self._custom.get(resource.name, JOBSET_COLUMNS)
        return COLUMNS.get(resource.name) or self._custom.get(resource.name) or (_NAME, _AGE)

    def table(
        self,
        resource: Resource,
        objects: Sequence[Object],
        meta: Object,
        *,
        include: str = "Metadata",
        head: bool = True,
    ) -> Object:
        """A Table of the objects; `include` is the includeObject parameter, `head` False leaves the columns out."""
        columns = self.columns(resource)
        now = datetime.datetime.now(datetime.timezone.utc)
        rows = [_row(columns, obj, now, include) for obj in objects]
        table: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": meta}
        table["columnDefinitions"] = [_definition(column) for column in columns] if head else None
        if not head:
            del table["columnDefinitions"]
        return {**table, "rows": rows}


def _definition(column: Column) -> Object:
    name, kind, priority, _ = column
    form = "name" if name == "Name" else ""
    return {"name": name, "type": kind, "format": form, "description": name, "priority": priority}


def _row(columns: Sequence[Column], obj: Object, now: Now, include: str) -> Object:
    row: Object = {"cells": [cell(obj, now) for _, _, _, cell in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = partial_metadata(obj)
    return row


def partial_metadata(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
