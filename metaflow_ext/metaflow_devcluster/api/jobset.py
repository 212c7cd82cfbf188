"""JobSet's admission: what its CRD schema and its two webhooks do to an object, with their texts.

The mutating webhook decodes into Go structs, so wrong types are its refusals (400, without a reason); the
validating one joins its errors with newlines (403). The schema's own refusals are in `crd_schema`.
"""

from __future__ import annotations

import copy
from typing import Any

from ..errors import webhook_denied
from ..resources import Resource
from . import names
from .schema import Schemas, Undecodable, typed

Object = dict[str, Any]
MUTATING, VALIDATING = "mjobset.kb.io", "vjobset.kb.io"
MAX_INT32 = 2**31 - 1
_TOO_LONG = "must be no more than 63 characters"
_KUEUE_MAY_CHANGE = ("nodeSelector", "tolerations", "schedulingGates")
_REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")


def mutate(schemas: Schemas, resource: Resource, obj: Object, *, creating: bool) -> Object:
    """The object as it leaves the mutating webhook, which is registered for creation only."""
    if not creating:
        return obj
    node = schemas.root(resource.group, resource.version, resource.kind)
    try:
        obj = typed(schemas, node, obj) if node else copy.deepcopy(obj)
    except Undecodable as error:
        raise webhook_denied(MUTATING, str(error), code=400, reason="") from error
    spec = obj.setdefault("spec", {})
    spec.setdefault("successPolicy", {"operator": "All"})
    spec.setdefault("startupPolicy", {"startupPolicyOrder": "AnyOrder"})
    network = spec.setdefault("network", {})
    network.setdefault("enableDNSHostnames", True)
    network.setdefault("publishNotReadyAddresses", True)
    for replicated in spec.get("replicatedJobs") or ():
        _default_replicated_job(replicated)
    if spec.get("failurePolicy") is not None:
        spec["failurePolicy"].setdefault("restartStrategy", "Recreate")
        for index, rule in enumerate(spec["failurePolicy"].get("rules") or ()):
            rule["name"] = rule.get("name") or f"failurePolicyRule{index}"
    for policy in spec.get("volumeClaimPolicies") or ():
        policy.setdefault("retentionPolicy", {}).setdefault("whenDeleted", "Delete")
    return obj


def _default_replicated_job(replicated: Object) -> None:
    replicated.setdefault("groupName", "default")
    replicated.setdefault("replicas", 1)
    job = replicated.setdefault("template", {}).setdefault("spec", {})
    job.setdefault("completionMode", "Indexed")
    pod = job.setdefault("template", {}).setdefault("spec", {})
    pod["restartPolicy"] = pod.get("restartPolicy") or "OnFailure"
    pod.setdefault("containers", None)
    for container in (*(pod["containers"] or ()), *(pod.get("initContainers") or ())):
        container.setdefault("resources", {})


def validate(jobset: Object) -> None:
    """Refuse what the validating webhook refuses at creation."""
    spec = jobset["spec"]
    replicated = spec.get("replicatedJobs") or []
    known = [r["name"] for r in replicated]
    found = []
    if replicated and replicated[0].get("dependsOn") is not None:
        found.append("DependsOn can't be set for the first ReplicatedJob")
    found += _network_errors(spec) + _managed_by_errors(spec)
    for index, item in enumerate(replicated):
        found += _replicated_job_errors(jobset, index, item, known[: index + 1])
    for name in spec["successPolicy"].get("targetReplicatedJobs") or ():
        if name not in known:
            found.append(f"invalid replicatedJob name '{name}' does not appear in .spec.ReplicatedJobs")
    found += _failure_policy_errors(spec.get("failurePolicy") or {}, known)
    if spec.get("coordinator"):
        found += _coordinator_errors(jobset, replicated)
    if found:
        raise webhook_denied(VALIDATING, "\n".join(found))


def _network_errors(spec: Object) -> list[str]:
    name, path = (spec.get("network") or {}).get("subdomain"), "spec.network.subdomain"
    if not name:
        return []
    label = [
        ".spec.network.subdomain is too long, must be less than 63 characters" if text == _TOO_LONG else text
        for text in names.dns_1035_label(name)
    ]
    return [str(names.wrong(path, name, text)) for text in (*names.dns_subdomain(name), *label)]


def _managed_by_errors(spec: Object) -> list[str]:
    manager, path = spec.get("managedBy"), "spec.managedBy"
    if manager is None:
        return []
    prefix, slash, rest = manager.partition("/")
    if not slash or not prefix or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [str(names.wrong(path, manager, text))]
    return [str(names.wrong(path, manager, text)) for text in names.dns_subdomain(prefix)]


def _replicated_job_errors(jobset: Object, index: int, item: Object, known: list[str]) -> list[str]:
    path, name, found = f"spec.replicatedJobs[{index}]", item["name"], []
    job, replicas = item["template"].get("spec") or {}, item["replicas"]
    if (1 if job.get("parallelism") is None else job["parallelism"]) * replicas > MAX_INT32:
        text = f"the product of replicas and parallelism must not exceed {MAX_INT32} for replicatedJob '{name}'"
        found.append(text)
    for text in names.dns_1035_label(item["groupName"]):
        if text == _TOO_LONG:
            text = ".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
        found.append(str(names.wrong(f"{path}.groupName", item["groupName"], text)))
    longest = f"{jobset['metadata']['name']}-{name}-{replicas - 1}"
    found += _generated_name_errors(path, longest, longest, "job")
    if job.get("completionMode") == "Indexed" and job.get("completions") is not None:
        pod = f"{longest}-{job['completions'] - 1}-abcde"
        found += _generated_name_errors(path, longest, pod, "pod")
    found += [
        f"replicatedJob: {name} cannot depend on replicatedJob: {other['name']}"
        for other in item.get("dependsOn") or ()
        if other["name"] not in known
    ]
    return found


def _generated_name_errors(path: str, shown: str, generated: str, what: str) -> list[str]:
    too_long = f"JobSet name is too long, {what} names generated for this JobSet will exceed 63 characters"
    texts = (too_long if text == _TOO_LONG else text for text in names.dns_1035_label(generated))
    return [str(names.wrong(f"{path}.name", shown, text)) for text in texts]


def _failure_policy_errors(policy: Object, known: list[str]) -> list[str]:
    found = []
    if policy.get("restartStrategy") == "InPlaceRestart":
        found.append("InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled")
    rules = policy.get("rules") or []
    for rule in rules:
        for name in rule.get("targetReplicatedJobs") or ():
            if name not in known:
                text = f"invalid replicatedJob name '{name}' in failure policy does not appear in .spec.ReplicatedJobs"
                found.append(text)
        for reason in rule.get("onJobFailureReasons") or ():
            if reason not in _REASONS:
                text = f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason"
                found.append(text)
    for name in dict.fromkeys(rule["name"] for rule in rules):
        places = [str(index) for index, rule in enumerate(rules) if rule["name"] == name]
        if len(places) > 1:
            text = f"rule names are not unique, rules with indices [{' '.join(places)}] all have the same name '{name}'"
            found.append(text)
    return found


def _coordinator_errors(jobset: Object, replicated: list[Object]) -> list[str]:
    coordinator = jobset["spec"]["coordinator"]
    name, job_index = coordinator["replicatedJob"], coordinator.get("jobIndex", 0)
    pod_index = coordinator.get("podIndex", 0)
    item = next((r for r in replicated if r["name"] == name), None)
    if item is None:
        return [f"coordinator replicatedJob {name} does not exist"]
    if not 0 <= job_index < item["replicas"]:
        return [f"coordinator job index {job_index} is invalid for replicatedJob {name}"]
    job = item["template"].get("spec") or {}
    if job.get("completions") is None or job.get("completionMode") != "Indexed":
        return ["job for coordinator pod must be indexed completion mode, and completions number must be set"]
    if not 0 <= pod_index < job["completions"]:
        return [f"coordinator pod index {pod_index} is invalid for replicatedJob {name} job index {job_index}"]
    return []


def validate_update(new: Object, old: Object) -> None:
    """Refuse changes of replicatedJobs (but for what Kueue sets while suspended) and of managedBy."""
    spec, before = copy.deepcopy(new.get("spec") or {}), old["spec"]
    if spec.get("suspend") or before.get("suspend"):
        pairs = zip(spec.get("replicatedJobs") or (), before.get("replicatedJobs") or (), strict=False)
        for item, earlier in pairs:
            _forgive_scheduling(item, earlier)
    found = []
    if spec.get("replicatedJobs") != before.get("replicatedJobs"):
        found.append(str(names.wrong("spec.replicatedJobs", spec.get("replicatedJobs"), "field is immutable")))
    if spec.get("managedBy") != before.get("managedBy"):
        found.append(str(names.wrong("spec.managedBy", spec.get("managedBy"), "field is immutable")))
    if found:
        text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
        raise webhook_denied(VALIDATING, text)


def _forgive_scheduling(item: Object, earlier: Object) -> None:
    new, old = (((r.get("template") or {}).get("spec") or {}).get("template") or {} for r in (item, earlier))
    metadata = {k: v for k, v in (new.get("metadata") or {}).items() if k not in ("labels", "annotations")}
    metadata |= {k: v for k, v in (old.get("metadata") or {}).items() if k in ("labels", "annotations")}
    new.pop("metadata", None)
    if metadata or "metadata" in old:
        new["metadata"] = metadata
    for key in _KUEUE_MAY_CHANGE:
        new.get("spec", {}).pop(key, None)
        if key in old.get("spec", {}):
            new["spec"][key] = old["spec"][key]
