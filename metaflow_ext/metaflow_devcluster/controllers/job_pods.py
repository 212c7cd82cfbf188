"""The pods of a Job: made from its template, as the Job controller makes them."""

from __future__ import annotations

import copy

from .objects import (
    COMPLETION_INDEX,
    TRACKING_FINALIZER,
    Object,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
)

FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURE_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
_LONGEST_PREFIX = 58
_INDEX_FIELD = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}


def is_indexed(job: Object) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def pod_of(job: Object, index: int | None, failures: tuple[int, int] = (0, 0)) -> Object:
    """A pod for a completion index (None for a Job that is not Indexed); `failures` are counted and ignored ones."""
    template = copy.deepcopy(job["spec"]["template"])
    given = template.get("metadata") or {}
    metadata: Object = {
        "generateName": _prefix(name_of(job), index),
        "namespace": namespace_of(job),
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "ownerReferences": [owner_reference(job)],
        "finalizers": [*(given.get("finalizers") or []), TRACKING_FINALIZER],
    }
    spec: Object = template["spec"]
    if index is not None:
        metadata["labels"][COMPLETION_INDEX] = str(index)
        metadata["annotations"][COMPLETION_INDEX] = str(index)
        spec.setdefault("hostname", f"{name_of(job)}-{index}"[:63])
        _name_the_index(spec)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            metadata["annotations"][FAILURE_COUNT] = str(failures[0])
            if failures[1]:
                metadata["annotations"][IGNORED_FAILURE_COUNT] = str(failures[1])
    if JOBSET_NAME in labels_of(job):  # JobSet's pod webhook
        metadata["labels"]["jobset.sigs.k8s.io/priority"] = str(spec.get("priority") or 0)
    if not metadata["annotations"]:
        del metadata["annotations"]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def failure_counts(pod: Object) -> tuple[int, int]:
    """Counted and ignored failures of this index before this pod."""
    found = annotations_of(pod)
    return int(found.get(FAILURE_COUNT, "0")), int(found.get(IGNORED_FAILURE_COUNT, "0"))


def _prefix(job_name: str, index: int | None) -> str:
    ending = "-" if index is None else f"-{index}-"
    return job_name[: _LONGEST_PREFIX - len(ending)] + ending


def _name_the_index(spec: Object) -> None:
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        env = container.setdefault("env", [])
        if not any(entry["name"] == "JOB_COMPLETION_INDEX" for entry in env):
            entry = {"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": dict(_INDEX_FIELD)}}
            env.append(entry)
