"""Everything between a decoded object and the store: defaults, admission plug-ins, rules, webhooks, quota.

The order is the real server's, because it decides which of several refusals a client sees. Controllers use the
same object as the API, so a bad template is refused at Job creation and an exceeded quota at pod creation.
"""

from __future__ import annotations

import uuid
from typing import Any

from .. import errors, kueue
from ..resources import Resource
from ..store import Store, clone, name_suffix, timestamp
from . import defaults, jobset, names, quota, validation
from .crd_schema import apply_schema_defaults, schema_causes, transition_causes
from .schema import Schemas

Object = dict[str, Any]
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_GENERATED_PREFIX = 58
_NOT_GIVEN = ("resourceVersion", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")


class Admission:
    """Admits objects into one store; `schemas` tells custom kinds what they may contain."""

    def __init__(self, store: Store, schemas: Schemas | None = None) -> None:
        self.store = store
        self.schemas = schemas or Schemas()
        self._addresses = 0

    # -- creation

    def admit_create(self, resource: str, obj: Object) -> tuple[Object, list[str]]:
        """The object to store and the warnings for the client; ApiError with the server's text when refused."""
        described = self.store.resources[resource]
        obj = clone(obj)
        obj.setdefault("kind", described.kind)
        obj.setdefault("apiVersion", described.api_version)
        meta = obj["metadata"] = obj.get("metadata") or {}
        for key in _NOT_GIVEN:
            meta.pop(key, None)
        meta["uid"] = str(uuid.uuid4())
        if described.namespaced:
            self._check_namespace(resource, meta)
        if kueue.is_played(self.store) and kueue.is_queued(obj):  # Kueue's webhook
            obj["spec"] = {**(obj.get("spec") or {}), "suspend": True}
        if described.custom:
            return self._admit_custom(described, obj), []
        return self._admit_built_in(resource, described, obj), []

    def _admit_built_in(self, resource: str, described: Resource, obj: Object) -> Object:
        if described.has_status:
            obj.pop("status", None)
        defaults.apply_defaults(resource, obj)
        if resource == "pods":
            self._admit_pod(obj)
        _complete_name(obj["metadata"])
        if resource == "namespaces":
            defaults.apply_defaults(resource, obj)
        if resource == "jobs.batch":
            _label_job(obj)
        if resource == "services":
            self._give_address(obj)
        self._refuse(described, obj, validation.create_causes(resource, obj))
        quota.check(self.store, resource, obj)
        return obj

    def _admit_custom(self, described: Resource, obj: Object) -> Object:
        node = self.schemas.root(described.group, described.version, described.kind)
        if described.has_status:
            obj.pop("status", None)
        if node:
            apply_schema_defaults(self.schemas, node, obj)
        if described.kind == "JobSet":
            obj = jobset.mutate(self.schemas, described, obj, creating=True)
        _complete_name(obj["metadata"])
        causes = validation.metadata_causes(described.name, obj["metadata"])
        self._refuse(described, obj, causes + (schema_causes(self.schemas, node, obj) if node else []))
        if described.kind == "JobSet":
            jobset.validate(obj)
        quota.check(self.store, described.name, obj)
        return obj

    def _refuse(self, described: Resource, obj: Object, causes: list[errors.Cause]) -> None:
        if causes:
            name = obj["metadata"].get("name") or obj["metadata"].get("generateName") or ""
            raise errors.invalid(described.kind, described.group, name, causes)

    def _check_namespace(self, resource: str, meta: Object) -> None:
        name = meta.get("namespace") or "default"
        meta["namespace"] = name
        namespace = self.store.find("namespaces", None, name)
        if namespace is None:
            raise errors.not_found("namespaces", name)
        if namespace["metadata"].get("deletionTimestamp"):
            text = f"unable to create new content in namespace {name} because it is being terminated"
            cause = errors.Cause("metadata.namespace", f"namespace {name} is being terminated", "NamespaceTerminating")
            raise errors.forbidden(resource, _shown_name(meta), text, causes=[cause])

    # -- pods

    def _admit_pod(self, pod: Object) -> None:
        spec = pod["spec"]
        self._give_service_account(pod)
        self._give_priority(pod)
        tolerations = spec.setdefault("tolerations", [])
        for taint in _TAINTS:
            if not any(_tolerates(toleration, taint) for toleration in tolerations):
                entry = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
                tolerations.append(entry)
        status: Object = {"phase": "Pending", "qosClass": defaults.quality_of_service(spec)}
        if spec.get("schedulingGates"):
            message = "Scheduling is blocked due to non-empty scheduling gates"
            gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": message}
            status["conditions"] = [{**gated, "lastProbeTime": None, "lastTransitionTime": timestamp()}]
        pod["status"] = status

    def _give_service_account(self, pod: Object) -> None:
        spec, meta = pod["spec"], pod["metadata"]
        name = spec.get("serviceAccountName") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self.store.find("serviceaccounts", meta["namespace"], name)
        if account is None:
            text = f'error looking up service account {meta["namespace"]}/{name}: serviceaccount "{name}" not found'
            raise errors.forbidden("pods", _shown_name(meta), text)
        wanted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
        if wanted:
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = clone(account["imagePullSecrets"])

    def _give_priority(self, pod: Object) -> None:
        spec, name = pod["spec"], pod["spec"].get("priorityClassName")
        chosen: Object | None = None
        if name:
            chosen = self.store.find("priorityclasses.scheduling.k8s.io", None, name)
            if chosen is None:
                text = f"no PriorityClass with name {name} was found"
                raise errors.forbidden("pods", _shown_name(pod["metadata"]), text)
        else:
            classes = self.store.list("priorityclasses.scheduling.k8s.io")
            chosen = next((item for item in classes if item.get("globalDefault")), None)
            if chosen:
                spec["priorityClassName"] = chosen["metadata"]["name"]
        spec["priority"] = (chosen or {}).get("value", 0)
        spec["preemptionPolicy"] = (chosen or {}).get("preemptionPolicy", "PreemptLowerPriority")

    def _give_address(self, service: Object) -> None:
        spec = service["spec"]
        if spec["type"] == "ExternalName":
            return
        if not spec.get("clusterIP"):
            self._addresses += 1
            spec["clusterIP"] = f"10.96.{self._addresses // 254 % 256}.{self._addresses % 254 + 1}"
        spec["clusterIPs"] = [spec["clusterIP"]]

    # -- update

    def admit_update(self, resource: str, new: Object, old: Object) -> tuple[Object, list[str]]:
        """The object to store for a change of everything but the status, which stays as it was."""
        described = self.store.resources[resource]
        new = clone(new)
        if described.has_status:
            new.pop("status", None)
            if "status" in old:
                new["status"] = old["status"]
        _keep_owned_metadata(new["metadata"], old["metadata"])
        if described.custom:
            self._check_custom_update(described, new, old)
            return new, []
        defaults.apply_defaults(resource, new)
        if resource == "pods":
            _keep_pod_fields(new, old)
        if resource == "services":
            for key in ("clusterIP", "clusterIPs"):
                if key in old["spec"]:
                    new["spec"].setdefault(key, old["spec"][key])
        if resource == "jobs.batch":
            _keep_job_fields(new, old)
        if resource == "namespaces":
            new["spec"] = old["spec"]
        self._refuse(described, new, validation.update_causes(resource, new, old))
        return new, []

    def _check_custom_update(self, described: Resource, new: Object, old: Object) -> None:
        node = self.schemas.root(described.group, described.version, described.kind)
        causes = validation.metadata_causes(described.name, new["metadata"])
        if new["metadata"].get("uid") not in (None, old["metadata"]["uid"]):
            causes.append(names.wrong("metadata.uid", new["metadata"]["uid"], "field is immutable"))
        if node:
            apply_schema_defaults(self.schemas, node, new)
            causes += schema_causes(self.schemas, node, new)
            causes += transition_causes(self.schemas, node, new, old)
        self._refuse(described, new, causes)
        if described.kind == "JobSet":
            jobset.validate_update(new, old)

    def admit_status(self, resource: str, new: Object, old: Object) -> Object:
        """The object to store for a change through /status: the old one with the new status."""
        described = self.store.resources[resource]
        updated = {**old}
        updated["metadata"] = {**old["metadata"]}
        for key in ("resourceVersion", "uid"):
            if new.get("metadata", {}).get(key):
                updated["metadata"][key] = new["metadata"][key]
        updated.pop("status", None)
        if "status" in new:
            updated["status"] = new["status"]
        node = self.schemas.root(described.group, described.version, described.kind)
        if described.custom and node and "status" in updated:
            apply_schema_defaults(self.schemas, node, updated)
            self._refuse(described, updated, schema_causes(self.schemas, node, updated))
        return updated


def _shown_name(meta: Object) -> str:
    return meta.get("name") or meta.get("generateName") or "Unknown"


def _complete_name(meta: Object) -> None:
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:_GENERATED_PREFIX] + name_suffix()


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key") in (taint, None, "") and toleration.get("effect") in ("NoExecute", None, "")


def _token_volume(spec: Object) -> Object:
    volumes = spec.get("volumes") or ()
    return next((v for v in volumes if (v.get("name") or "").startswith("kube-api-access-")), {})


def _mount_token(spec: Object) -> None:
    volume = _token_volume(spec).get("name")
    mounted = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.setdefault("volumeMounts", [])
        if any(mount.get("mountPath") == _TOKEN_PATH for mount in mounts):
            continue
        volume = volume or f"kube-api-access-{name_suffix()}"
        mounts.append({"name": volume, "readOnly": True, "mountPath": _TOKEN_PATH})
        mounted = True
    if mounted and not any(item.get("name") == volume for item in spec.get("volumes") or ()):
        field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
        sources = [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ]
        projected = {"sources": sources, "defaultMode": defaults.DEFAULT_MODE}
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": volume, "projected": projected}]


def _label_job(job: Object) -> None:
    """The selector and labels that tie a Job to its pods, unless the user manages them."""
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector"):
        return
    template = spec["template"]["metadata"]
    owned = dict.fromkeys(_JOB_LABELS, meta["uid"])
    owned |= {"batch.kubernetes.io/job-name": meta["name"], "job-name": meta["name"]} if meta.get("name") else {}
    template["labels"] = {**(template.get("labels") or {}), **owned}
    if not meta.get("labels"):
        meta["labels"] = dict(template["labels"])
    spec["selector"] = {"matchLabels": {_JOB_LABELS[0]: meta["uid"]}}


def _keep_owned_metadata(new: Object, old: Object) -> None:
    for key in ("namespace", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in old:
            new[key] = old[key]
        else:
            new.pop(key, None)


def _keep_pod_fields(new: Object, old: Object) -> None:
    """A replacement without the fields that admission filled in keeps them."""
    spec, before = new["spec"], old["spec"]
    for key in ("serviceAccountName", "serviceAccount", "priority", "preemptionPolicy", "nodeName", "tolerations"):
        if key in before:
            spec.setdefault(key, before[key])
    token = _token_volume(before)
    if token and token["name"] not in {v.get("name") for v in spec.get("volumes") or ()}:
        spec["volumes"] = [*(spec.get("volumes") or ()), token]
    kept = {c["name"]: c for c in before.get("containers") or ()}
    for container in spec.get("containers") or ():
        mounts = kept.get(container.get("name"), {}).get("volumeMounts") or ()
        for mount in mounts:
            paths = {m.get("mountPath") for m in container.get("volumeMounts") or ()}
            if mount["mountPath"] == _TOKEN_PATH and _TOKEN_PATH not in paths:
                container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


def _keep_job_fields(new: Object, old: Object) -> None:
    """A replacement written from the original manifest keeps the generated selector and labels."""
    spec, before = new["spec"], old["spec"]
    if "selector" in before:
        spec.setdefault("selector", before["selector"])
    if not spec.get("manualSelector"):
        generated = (before["template"].get("metadata") or {}).get("labels") or {}
        labels = spec["template"]["metadata"].setdefault("labels", {})
        for key in (*_JOB_LABELS, "batch.kubernetes.io/job-name", "job-name"):
            if key in generated:
                labels.setdefault(key, generated[key])
