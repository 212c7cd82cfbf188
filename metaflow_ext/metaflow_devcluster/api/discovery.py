"""Discovery: versions, groups and resources, in the plain and the aggregated form."""

from __future__ import annotations

import platform
from typing import Any

from ..resources import Resource, Resources

Object = dict[str, Any]
MINOR = "37"
GIT_VERSION = f"v1.{MINOR}.2"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def version() -> Object:
    return {
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": MINOR,
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "36",
        "gitVersion": GIT_VERSION,
        "gitCommit": "0" * 40,
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": "cpython",
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def api_versions(host: str) -> Object:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def group(name: str, versions: list[str]) -> Object:
    entries = [{"groupVersion": f"{name}/{item}", "version": item} for item in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def _versions_by_group(resources: Resources) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, item in resources.group_versions():
        if name:
            found.setdefault(name, []).append(item)
    return found


def group_list(resources: Resources) -> Object:
    groups = [group(name, versions) for name, versions in _versions_by_group(resources).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_of(resources: Resources, name: str) -> Object | None:
    versions = _versions_by_group(resources).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **group(name, versions)} if versions else None


def resource_list(resources: Resources, group_name: str, version_name: str) -> Object | None:
    """APIResourceList of a group version; None when it is not served."""
    served = [r for r in resources if (r.group, r.version) == (group_name, version_name)]
    if not served:
        return None
    entries = [entry for resource in served for entry in _entries(resource)]
    where = f"{group_name}/{version_name}" if group_name else version_name
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": where, "resources": entries}


def _entries(resource: Resource) -> list[Object]:
    own: Object = {"name": resource.plural, "singularName": resource.singular_name}
    own |= {"namespaced": resource.namespaced, "kind": resource.kind, "verbs": list(resource.verbs)}
    if resource.short_names:
        own["shortNames"] = list(resource.short_names)
    if resource.categories:
        own["categories"] = list(resource.categories)
    found = [own]
    for sub in resource.subresources:
        entry: Object = {"name": f"{resource.plural}/{sub.name}", "singularName": "", "namespaced": resource.namespaced}
        if sub.group or sub.version:
            entry |= {"group": sub.group, "version": sub.version}
        found.append({**entry, "kind": sub.kind, "verbs": list(sub.verbs)})
    return found


def aggregated(resources: Resources, *, core: bool, form: str) -> Object:
    """APIGroupDiscoveryList; of /api (`core`) or /apis, in version `v2` or `v2beta1`."""
    groups: dict[str, dict[str, list[Resource]]] = {}
    for resource in resources:
        if (resource.group == "") == core:
            groups.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {"version": item, "resources": [_aggregated_entry(r) for r in served], "freshness": "Current"}
                for item, served in versions.items()
            ],
        }
        for name, versions in groups.items()
    ]
    kind = {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{form}"}
    return {**kind, "metadata": {}, "items": items}


def _aggregated_entry(resource: Resource) -> Object:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Object = {"resource": resource.plural, "responseKind": kind}
    entry["scope"] = "Namespaced" if resource.namespaced else "Cluster"
    entry["singularResource"] = resource.singular_name
    entry["verbs"] = list(resource.verbs)
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group or ("" if sub.version else resource.group),
                    "version": sub.version or resource.version,
                    "kind": sub.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in resource.subresources
        ]
    return entry
