"""The rules of metadata and of the built-in kinds other than pods and Jobs, at creation and at update."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import Cause
from . import names
from .job_validation import job_causes, job_update_causes
from .pod_validation import pod_spec_causes, pod_update_causes
from .quantities import quantity

Object = dict[str, Any]
_NAME_RULES: dict[str, Callable[[str], list[str]]] = {
    "namespaces": names.dns_label,
    "services": names.dns_1035_label,
}


def create_causes(resource: str, obj: Object) -> list[Cause]:
    """Every broken rule of a new object of a built-in resource."""
    rules = _CREATE.get(resource)
    return metadata_causes(resource, obj["metadata"]) + (rules(obj) if rules else [])


def update_causes(resource: str, new: Object, old: Object) -> list[Cause]:
    """Every broken rule of a change; the new object must be valid, and some fields may not change."""
    found = metadata_causes(resource, new["metadata"]) + _metadata_update_causes(new["metadata"], old["metadata"])
    if resource in _UPDATE:
        return found + _UPDATE[resource](new, old)
    return found + (_CREATE[resource](new) if resource in _CREATE else [])


def metadata_causes(resource: str, meta: Object) -> list[Cause]:
    name, found = meta.get("name") or "", []
    if not name:
        found.append(names.required("metadata.name", "name or generateName is required"))
    else:
        rule = _NAME_RULES.get(resource, names.dns_subdomain)
        found += names.each_text("metadata.name", name, rule(name))
    found += names.label_causes(meta.get("labels") or {}, "metadata.labels")
    found += names.annotation_causes(meta.get("annotations") or {}, "metadata.annotations")
    for finalizer in meta.get("finalizers") or ():
        found += names.each_text("metadata.finalizers", finalizer, names.qualified_name(finalizer))
    return found + _owner_causes(meta.get("ownerReferences") or [])


def _owner_causes(owners: list[Object]) -> list[Cause]:
    found = []
    for index, owner in enumerate(owners):
        at = f"metadata.ownerReferences[{index}]"
        for key, text in (("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")):
            if not owner.get(key):
                found.append(names.wrong(f"{at}.{key}", owner.get(key) or "", f"{text} must not be empty"))
    if sum(bool(owner.get("controller")) for owner in owners) > 1:
        text = "Only one reference can have Controller set to true"
        found.append(names.wrong("metadata.ownerReferences", owners, text))
    return found


def _metadata_update_causes(new: Object, old: Object) -> list[Cause]:
    found = []
    if new.get("uid") and new["uid"] != old["uid"]:
        found.append(names.wrong("metadata.uid", new["uid"], "field is immutable"))
    added = [f for f in new.get("finalizers") or () if f not in (old.get("finalizers") or ())]
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(names.go_value(name) for name in added)
        text = "no new finalizers can be added if the object is being deleted, found new finalizers "
        found.append(names.banned("metadata.finalizers", f"{text}[]string{{{listed}}}"))
    return found


def _pod(pod: Object) -> list[Cause]:
    found = pod_spec_causes(pod["spec"], "spec")
    if pod["spec"].get("schedulingGates") and pod["spec"].get("nodeName"):
        found.append(names.banned("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return found


def _config_map(obj: Object) -> list[Cause]:
    found = []
    for key in ("data", "binaryData"):
        for name in obj.get(key) or ():
            found += names.each_text(f"{key}[{name}]", name, names.config_key(name))
    for name in obj.get("binaryData") or ():
        if name in (obj.get("data") or ()):
            found.append(names.wrong(f"data[{name}]", name, "duplicate of key present in binaryData"))
    return found


def _secret(obj: Object) -> list[Cause]:
    return [cause for name in obj.get("data") or () for cause in names.each_text(f"data[{name}]", name, names.config_key(name))]


def _immutable_data(rules: Callable[[Object], list[Cause]]) -> Callable[[Object, Object], list[Cause]]:
    def causes(new: Object, old: Object) -> list[Cause]:
        found = rules(new)
        if old.get("immutable"):
            text = "field is immutable when `immutable` is set"
            keys = ("data", "binaryData", "immutable")
            found += [names.banned(key, text) for key in keys if new.get(key) != old.get(key)]
        return found

    return causes


def _secret_update(new: Object, old: Object) -> list[Cause]:
    found = _immutable_data(_secret)(new, old)
    if new.get("type") != old.get("type"):
        found.append(names.wrong("type", new.get("type"), "field is immutable"))
    return found


def _event(event: Object) -> list[Cause]:
    mine = event["metadata"].get("namespace")
    other = (event.get("involvedObject") or {}).get("namespace") or ""
    if other == mine or (not other and mine in ("default", "kube-system")):
        return []
    return [names.wrong("involvedObject.namespace", other, "does not match event.namespace")]


def _service(service: Object) -> list[Cause]:
    spec, found = service["spec"], []
    headless = spec.get("clusterIP") == "None"
    if spec["type"] not in ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort"):
        kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
        found.append(names.unsupported("spec.type", spec["type"], kinds))
    if not spec.get("ports") and not headless and spec["type"] != "ExternalName":
        found.append(names.required("spec.ports"))
    for index, port in enumerate(spec.get("ports") or ()):
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            found.append(names.wrong(f"spec.ports[{index}].port", number, "must be between 1 and 65535, inclusive"))
        if not port.get("name") and len(spec["ports"]) > 1:
            found.append(names.required(f"spec.ports[{index}].name"))
    return found + names.label_causes(spec.get("selector") or {}, "spec.selector")


def _service_update(new: Object, old: Object) -> list[Cause]:
    found = _service(new)
    before, now = old["spec"].get("clusterIP"), new["spec"].get("clusterIP")
    if before and now != before and new["spec"]["type"] != "ExternalName":
        found.append(names.wrong("spec.clusterIPs[0]", [now] if now else None, "may not change once set"))
    return found


def _lease(lease: Object) -> list[Cause]:
    found = []
    for key, least, text in (
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ):
        value = lease["spec"].get(key)
        if value is not None and value < least:
            found.append(names.wrong(f"spec.{key}", value, text))
    return found


def _claim(claim: Object) -> list[Cause]:
    spec, found = claim["spec"], []
    if not spec.get("accessModes"):
        found.append(names.required("spec.accessModes", "at least 1 access mode is required"))
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        found.append(names.required("spec.resources[storage]"))
    return found


def _claim_update(new: Object, old: Object) -> list[Cause]:
    fixed = ({k: v for k, v in obj["spec"].items() if k not in ("resources", "volumeName")} for obj in (new, old))
    text = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
    now, before = fixed
    return _claim(new) + ([names.banned("spec", text)] if now != before else [])


def _quota(quota: Object) -> list[Cause]:
    found = []
    for key, amount in (quota["spec"].get("hard") or {}).items():
        found += names.each_text(f"spec.hard[{key}]", key, names.qualified_name(key))
        if quantity(amount) < 0:
            found.append(names.wrong(f"spec.hard[{key}]", amount, "must be greater than or equal to 0"))
    return found


def _priority_update(new: Object, old: Object) -> list[Cause]:
    return [
        names.banned(key, "may not be changed in an update.")
        for key in ("value", "preemptionPolicy")
        if new.get(key) != old.get(key)
    ]


def _definition(crd: Object) -> list[Cause]:
    spec, found = crd["spec"], []
    group, plural = spec.get("group") or "", spec["names"].get("plural") or ""
    if not group:
        found.append(names.required("spec.group"))
    if not spec["names"].get("kind"):
        found.append(names.required("spec.names.kind"))
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        found.append(names.unsupported("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced")))
    if not any(version.get("storage") for version in spec.get("versions") or ()):
        text = "must have exactly one version marked as storage version"
        found.append(names.wrong("spec.versions", spec.get("versions") or [], text))
    name = crd["metadata"].get("name") or ""
    if name != f"{plural}.{group}":
        text = 'must be spec.names.plural+"."+spec.group'
        found.append(names.wrong("metadata.name", name, text))
    return found


_CREATE: dict[str, Callable[[Object], list[Cause]]] = {
    "pods": _pod,
    "jobs.batch": job_causes,
    "configmaps": _config_map,
    "secrets": _secret,
    "events": _event,
    "services": _service,
    "leases.coordination.k8s.io": _lease,
    "persistentvolumeclaims": _claim,
    "resourcequotas": _quota,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
_UPDATE: dict[str, Callable[[Object, Object], list[Cause]]] = {
    "pods": pod_update_causes,
    "jobs.batch": job_update_causes,
    "configmaps": _immutable_data(_config_map),
    "secrets": _secret_update,
    "services": _service_update,
    "persistentvolumeclaims": _claim_update,
    "priorityclasses.scheduling.k8s.io": _priority_update,
}
