"""Whose a pod or a Job is, where a whole namespace is looked at: by uid where that is told, else by name.

Sources: the labels that the Job and the JobSet controller put on pods; metadata.ownerReferences.
"""

from __future__ import annotations

from ..spec import labels
from .model import KubernetesObject
from .reading import label, name, owner_uids, text, uid

_KEYS = {"JobSet": (labels.JOBSET_UID, labels.JOBSET_NAME), "Job": (labels.CONTROLLER_UID, labels.JOB_NAME)}


def owns_pod(owner: KubernetesObject | None, pod: KubernetesObject) -> bool:
    """Whether the pod is one of this JobSet's or Job's."""
    uid_key, name_key = _KEYS.get(text(owner, "kind"), ("", ""))
    told = label(pod, uid_key)
    if told and uid(owner):
        return told == uid(owner)
    if uid(owner) and uid(owner) in owner_uids(pod):
        return True
    return bool(name(owner)) and label(pod, name_key) == name(owner)


def owns_job(owner: KubernetesObject | None, job: KubernetesObject) -> bool:
    """Whether the Job is one of this JobSet's, or is the owner itself."""
    if uid(owner) and (owner_uids(job) or uid(job)):
        return uid(owner) in owner_uids(job) | {uid(job)}
    return bool(name(owner)) and label(job, labels.JOBSET_NAME) == name(owner)
