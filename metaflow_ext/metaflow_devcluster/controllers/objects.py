"""Reading Kubernetes objects: the questions that every controller asks, as small predicates over plain dicts."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any

Object = dict[str, Any]

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
EVICT = "metaflow-devcluster/evict"
"""Annotation that has the node evict its pod, as one does that runs out of something; the value is the message."""


def meta(obj: Object) -> Object:
    found: Object = obj["metadata"]
    return found


def name_of(obj: Object) -> str:
    return str(meta(obj)["name"])


def namespace_of(obj: Object) -> str:
    return str(meta(obj).get("namespace") or "")


def uid_of(obj: Object) -> str:
    return str(meta(obj)["uid"])


def key_of(obj: Object) -> tuple[str, str]:
    return namespace_of(obj), name_of(obj)


def labels_of(obj: Object) -> dict[str, str]:
    return meta(obj).get("labels") or {}


def annotations_of(obj: Object) -> dict[str, str]:
    return meta(obj).get("annotations") or {}


def finalizers_of(obj: Object) -> list[str]:
    return meta(obj).get("finalizers") or []


def owners_of(obj: Object) -> list[Object]:
    return meta(obj).get("ownerReferences") or []


def spec_of(obj: Object) -> Object:
    return obj.get("spec") or {}


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


def controller_of(obj: Object, kind: str) -> Object | None:
    """The ownerReference of the controlling owner, when that is of this kind."""
    return next((ref for ref in owners_of(obj) if ref.get("controller") and ref.get("kind") == kind), None)


def is_controlled_by(obj: Object, owner_uid: str) -> bool:
    return any(ref.get("controller") and ref.get("uid") == owner_uid for ref in owners_of(obj))


def owner_reference(owner: Object) -> Object:
    """The reference that a controller puts on what it creates."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_being_deleted(obj: Object) -> bool:
    return bool(meta(obj).get("deletionTimestamp"))


def is_tracked(pod: Object) -> bool:
    """Whether the Job controller has still to count this pod."""
    return TRACKING_FINALIZER in finalizers_of(pod)


def condition(obj: Object, kind: str) -> Object | None:
    return next((c for c in status_of(obj).get("conditions") or [] if c.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    """A condition counts only with status "True"."""
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"


def phase_of(pod: Object) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def is_terminal(pod: Object) -> bool:
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Counts as active for a Job: not ended and not on its way out."""
    return not is_terminal(pod) and not is_being_deleted(pod)


def is_finished_job(job: Object) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def is_finished_jobset(jobset: Object) -> bool:
    return is_true(jobset, "Completed") or is_true(jobset, "Failed")


def completion_index(pod: Object) -> int | None:
    """The rank within an Indexed Job, None where the pod has none."""
    text = annotations_of(pod).get(COMPLETION_INDEX, labels_of(pod).get(COMPLETION_INDEX, ""))
    return int(text) if text.isdigit() else None


def parse_time(text: str | None) -> datetime.datetime | None:
    """RFC 3339 as Kubernetes writes it, with or without a fraction."""
    if not text:
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def format_time(moment: datetime.datetime) -> str:
    return f"{moment.astimezone(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


def format_micro_time(moment: datetime.datetime) -> str:
    return f"{moment.astimezone(datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%fZ}"


def seconds_since(text: str | None, now: datetime.datetime) -> float:
    """Seconds from a time stamp to `now`; 0.0 when there is none."""
    moment = parse_time(text)
    return (now - moment).total_seconds() if moment else 0.0


def container_names(containers: Iterable[Object]) -> list[str]:
    return [container["name"] for container in containers]
