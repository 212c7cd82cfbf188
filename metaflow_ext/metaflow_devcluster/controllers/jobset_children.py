"""The Jobs and the headless Service of a JobSet, made as the JobSet controller makes them."""

from __future__ import annotations

import copy
import hashlib

from .objects import Object, name_of, namespace_of, owner_reference, spec_of, status_of, uid_of

PREFIX = "jobset.sigs.k8s.io/"
JOBSET_NAME = PREFIX + "jobset-name"
RESTART_ATTEMPT = PREFIX + "restart-attempt"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def replicas_of(rjob: Object) -> int:
    """The number of Jobs; negative numbers, which are accepted, make none."""
    replicas = rjob.get("replicas")
    return 1 if replicas is None else max(int(replicas), 0)


def subdomain_of(jobset: Object) -> str:
    network = spec_of(jobset).get("network") or {}
    return network.get("subdomain") or name_of(jobset)


def job_name(jobset: Object, rjob: Object, index: int) -> str:
    return f"{name_of(jobset)}-{rjob['name']}-{index}"


def job_names(jobset: Object, rjob: Object) -> list[str]:
    return [job_name(jobset, rjob, index) for index in range(replicas_of(rjob))]


def host_names(jobset: Object) -> set[str]:
    """The host names that the pods of this JobSet will have, whether they exist yet or not."""
    names: set[str] = set()
    for rjob in spec_of(jobset).get("replicatedJobs") or []:
        completions = rjob["template"]["spec"].get("completions") or 1
        names.update(f"{name}-{index}" for name in job_names(jobset, rjob) for index in range(completions))
    return names


def has_dns(jobset: Object) -> bool:
    network = spec_of(jobset).get("network") or {}
    return network.get("enableDNSHostnames") is not False


def job_of(jobset: Object, rjob: Object, index: int) -> Object:
    """Job number `index` of a replicated job, with the labels and annotations that its pods inherit."""
    template = copy.deepcopy(rjob["template"])
    given = template.get("metadata") or {}
    added = _labels(jobset, rjob, index)
    annotations = dict(added)
    for key, value in (jobset["metadata"].get("annotations") or {}).items():
        if key == _EXCLUSIVE:
            annotations[key] = value
    spec: Object = template["spec"]
    spec["suspend"] = bool(spec_of(jobset).get("suspend"))
    pod = spec.setdefault("template", {})
    pod_meta = dict(pod.get("metadata") or {})
    pod_meta["labels"] = {**(pod_meta.get("labels") or {}), **added}
    pod_meta["annotations"] = {**(pod_meta.get("annotations") or {}), **annotations}
    pod["metadata"] = pod_meta
    if has_dns(jobset):
        pod["spec"]["subdomain"] = subdomain_of(jobset)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(jobset, rjob, index),
            "namespace": namespace_of(jobset),
            "labels": {**(given.get("labels") or {}), **added},
            "annotations": {**(given.get("annotations") or {}), **annotations},
            "ownerReferences": [owner_reference(jobset)],
        },
        "spec": spec,
    }


def service_of(jobset: Object) -> Object:
    """The headless Service that gives the pods their DNS names."""
    network = spec_of(jobset).get("network") or {}
    publish = network.get("publishNotReadyAddresses")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": subdomain_of(jobset),
            "namespace": namespace_of(jobset),
            "ownerReferences": [owner_reference(jobset)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {JOBSET_NAME: name_of(jobset)},
            "publishNotReadyAddresses": True if publish is None else publish,
        },
    }


def _labels(jobset: Object, rjob: Object, index: int) -> dict[str, str]:
    """Twelve labels; the same stand in the annotations."""
    rjobs = spec_of(jobset)["replicatedJobs"]
    group = rjob.get("groupName") or "default"
    name = job_name(jobset, rjob, index)
    found = {
        "global-replicas": str(sum(map(replicas_of, rjobs))),
        "group-name": group,
        "group-replicas": str(sum(replicas_of(other) for other in rjobs if _group(other) == group)),
        "job-global-index": str(_jobs_before(rjobs, rjob) + index),
        "job-group-index": str(_jobs_before([other for other in rjobs if _group(other) == group], rjob) + index),
        "job-index": str(index),
        "job-key": hashlib.sha1(f"{namespace_of(jobset)}/{name}".encode()).hexdigest(),
        "jobset-name": name_of(jobset),
        "jobset-uid": uid_of(jobset),
        "replicatedjob-name": rjob["name"],
        "replicatedjob-replicas": str(replicas_of(rjob)),
        "restart-attempt": str(status_of(jobset).get("restarts", 0)),
    }
    coordinator = spec_of(jobset).get("coordinator")
    if coordinator:
        found["coordinator"] = coordinator_endpoint(jobset, coordinator)
    return {PREFIX + key: value for key, value in found.items()}


def coordinator_endpoint(jobset: Object, coordinator: Object) -> str:
    job, pod = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
    return f"{name_of(jobset)}-{coordinator['replicatedJob']}-{job}-{pod}.{subdomain_of(jobset)}"


def _group(rjob: Object) -> str:
    return rjob.get("groupName") or "default"


def _jobs_before(rjobs: list[Object], rjob: Object) -> int:
    before = 0
    for other in rjobs:
        if other["name"] == rjob["name"]:
            break
        before += replicas_of(other)
    return before
