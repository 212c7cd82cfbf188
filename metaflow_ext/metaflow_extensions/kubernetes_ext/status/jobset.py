"""The reducer for JobSets (jobset.x-k8s.io): its status, its Jobs and its pods into one verdict.

Terminal only by a condition whose status is "True", by a Job that failed with no restart left, by the pods of all ranks having
succeeded, by a node that is lost, or by the object being gone. Counters decide nothing: they are all zero in every run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..spec import labels
from .incidents import is_node_lost
from .job_evidence import failed_jobs
from .layout import jobset_layout, layout_of_pods
from .model import KubernetesObject, Observation, PodRecord, WorkloadStatus
from .pods import attempt_of
from .reading import Condition, conditions, integer, is_terminating, label, mapping, mappings, text, uid
from .restarts import is_restart_left, may_restart, restarts_of, tolerates_disruption
from .verdict import (
    View,
    absent,
    by_counters,
    failed,
    final,
    has_own_failure,
    have_all_succeeded,
    is_suspended,
    succeeded,
    unfinished,
    view_of,
)


def jobset_status(observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
    """What is observed of a JobSet, judged. `previous` is the verdict before, kept where nothing new can be read."""
    observation = _own(observation)
    if observation.workload is None:
        return final(_absent(observation, previous), previous)
    layout = jobset_layout(observation.workload)
    if not layout.groups and previous:
        return replace(previous)  # unreadable: what was known stays
    restarts = max(restarts_of(observation.workload), max((attempt_of(one.object) for one in observation.pods), default=0))
    view = view_of(observation, layout, restarts, restarts, previous)
    return final(_judge(view, observation.workload), previous)


def _judge(view: View, jobset: KubernetesObject) -> WorkloadStatus:
    found = conditions(jobset)
    if "Failed" in found:
        return failed(view, found["Failed"])
    if "Completed" in found:
        return succeeded(view, found["Completed"])
    if condition := _failed_job(view, jobset):
        return failed(view, condition)
    if have_all_succeeded(view):
        return succeeded(view)
    if _has_lost_node(view, jobset):
        return failed(view)
    status = unfinished(view, is_suspended=is_suspended(view, jobset), has_status=bool(mapping(jobset, "status")))
    return by_counters(view, status, active=_sum_of(jobset, "active"), is_ready=_is_ready(view, jobset))


def _failed_job(view: View, jobset: KubernetesObject) -> Condition | None:
    """The condition of a Job that failed for good. In a JobSet that is being deleted only with a rank that failed by itself."""
    if is_terminating(jobset) and not has_own_failure(view):
        return None
    for job, condition in failed_jobs(view.case.jobs):
        if not is_restart_left(jobset, job, condition):
            return condition
    return None


def _has_lost_node(view: View, jobset: KubernetesObject) -> bool:
    """Neither JobSet nor Job ever says so: the Job waits for a pod that can't report."""
    if may_restart(jobset) or is_terminating(jobset):
        return False
    return any(
        is_node_lost(record, view.observation) and not tolerates_disruption(_job_spec(jobset, record))
        for record in view.case.chosen.values()
    )


def _job_spec(jobset: KubernetesObject, record: PodRecord) -> Mapping[str, Any]:
    role = label(record.object, labels.JOBSET_GROUP)
    entries = mappings(jobset, "spec", "replicatedJobs")
    return next((mapping(entry, "template", "spec") for entry in entries if text(entry, "name") == role), {})


def _is_ready(view: View, jobset: KubernetesObject) -> bool:
    return _sum_of(jobset, "ready") >= sum(group.replicas for group in view.layout.groups) > 0


def _sum_of(jobset: KubernetesObject, counter: str) -> int:
    """They count Jobs, not pods."""
    counters = mappings(jobset, "status", "replicatedJobsStatus") or mappings(jobset, "status", "ReplicatedJobsStatus")
    return sum(integer(entry, counter) or 0 for entry in counters)


def _absent(observation: Observation, previous: WorkloadStatus | None) -> WorkloadStatus:
    attempt = max((attempt_of(record.object) for record in observation.pods), default=0)
    layout = layout_of_pods(record.object for record in observation.pods)
    return absent(view_of(observation, layout, attempt, attempt, previous), "JobSet")


def _own(observation: Observation) -> Observation:
    """Without the pods of an earlier JobSet of the same name."""
    owner = uid(observation.workload)
    if not owner:
        return observation
    pods = tuple(one for one in observation.pods if label(one.object, labels.JOBSET_UID) in ("", owner))
    return replace(observation, pods=pods)
