"""The reducer for a plain batch/v1 Job, NonIndexed or Indexed: the workload is itself the Job, its pods are the ranks.

The same rules as for JobSets; a Job has no restarts of its own, it replaces single pods up to its backoffLimit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..spec import labels
from .incidents import is_node_lost
from .job_evidence import failure_condition
from .layout import Layout, job_layout, layout_of_pods
from .model import KubernetesObject, Observation, PodRecord, WorkloadStatus
from .reading import Condition, conditions, integer, is_terminating, label, mapping, uid
from .restarts import tolerates_disruption
from .slots import slots
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


def job_status(observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
    """What is observed of a Job, judged. `previous` is the verdict before, kept where nothing new can be read."""
    observation = _own(observation)
    job = observation.workload
    if job is None:
        layout = layout_of_pods((record.object for record in observation.pods), is_plain_job=True)
        return final(absent(view_of(observation, layout, 0, 0, previous), "Job"), previous)
    if not mapping(job, "spec") and previous:
        return previous  # unreadable: what was known stays
    view = view_of(observation, _with_slots(job_layout(job), observation.pods), 0, 0, previous)
    return final(_judge(view, job), previous)


def _with_slots(layout: Layout, pods: Iterable[PodRecord]) -> Layout:
    return replace(layout, slots=slots(pods, layout.size)) if layout.size > 1 else layout


def _judge(view: View, job: KubernetesObject) -> WorkloadStatus:
    found = conditions(job)
    if condition := _failure(view, job):
        return failed(view, condition)
    if "Complete" in found:
        return succeeded(view, found["Complete"])
    if have_all_succeeded(view):
        return succeeded(view)
    if _has_lost_node(view, job):
        return failed(view)
    status = unfinished(view, is_suspended=is_suspended(view, job), has_status=bool(mapping(job, "status")))
    return by_counters(view, status, active=integer(job, "status", "active"), is_ready=_is_ready(view, job))


def _failure(view: View, job: KubernetesObject) -> Condition | None:
    if "Failed" in conditions(job) or not is_terminating(job):
        return failure_condition(job)
    return failure_condition(job) if has_own_failure(view) else None


def _has_lost_node(view: View, job: KubernetesObject) -> bool:
    spec: Mapping[str, Any] = mapping(job, "spec")
    if is_terminating(job) or tolerates_disruption(spec):
        return False
    return any(is_node_lost(record, view.observation) for record in view.case.chosen.values())


def _is_ready(view: View, job: KubernetesObject) -> bool:
    return (integer(job, "status", "ready") or 0) >= view.layout.at_once > 0


def _own(observation: Observation) -> Observation:
    """Without the pods of an earlier Job of the same name; the Job is the only one to look at."""
    owner = uid(observation.workload)
    pods = tuple(one for one in observation.pods if not owner or label(one.object, labels.CONTROLLER_UID) in ("", owner))
    jobs = (observation.workload,) if observation.workload is not None else ()
    return replace(observation, pods=pods, jobs=jobs)
