"""Who failed first and why, from all that was observed: one Failure that names role, rank, pod, node, exit code and what to do.

Order of evidence: what the pod watch saw, first harm first; the podFailurePolicy's message, in a Job or an Event that outlived
it; the Job's own reason; the JobSet's message last, since it can name the victim. Says nothing about whether the workload failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from ..spec import labels
from ..spec.launch import CONTROL
from .causes import RUN_AGAIN, Cause, cause_of, cause_of_exit, deleted_by_hand, log_tail
from .describe import sentence, who
from .ends import SIGTERM, End, disruption, end_of, is_killed
from .incidents import Harm, Incident, incidents
from .job_evidence import PodFailure, failed_jobs, first_failed_index, job_named_in, named_pod_failures
from .layout import TASK, Layout, Place
from .model import Category, Failure, KubernetesObject, Observation, PodRecord, RankStatus, Waiting
from .pods import rank_status
from .reading import Condition, conditions, false_condition, integer, label, name
from .related_events import related_events


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is known when a workload has failed. `chosen` are the pods that speak for their ranks."""

    observation: Observation
    layout: Layout
    chosen: Mapping[int, PodRecord]
    jobs: tuple[KubernetesObject, ...] = ()
    restarts: int = 0


def diagnose(case: Case, terminal: Condition | None = None) -> Failure:
    """`terminal` is the workload's own condition, where there is one."""
    first = first_incident(case)
    named = named_pod_failures(case.jobs, case.observation, case.restarts)
    deadline = _deadline(case, first)
    if deadline:
        return deadline
    if named and (first is None or first.harm is Harm.DELETION or _vanished(case, named[0].pod)):
        return _of_named_pod(case, named[0])
    return of_incident(case, first) if first else _of_jobs(case, terminal)


def _vanished(case: Case, pod: str) -> bool:
    """Gone while nobody watched, before its end was seen: what was seen of others may be its consequence."""
    return any(name(one.object) == pod and one.deleted and end_of(one.object) is None for one in case.chosen.values())


def first_incident(case: Case) -> Incident | None:
    """The first harm that came to a rank. Deletions in a workload that was ever suspended may be the suspension's."""
    found = incidents(case.chosen)
    was_suspended = case.observation.admission is not None or _has_condition(case.observation.workload, "Suspended")
    if was_suspended and any(one.harm is not Harm.DELETION for one in found):
        found = [one for one in found if one.harm is not Harm.DELETION]
    return found[0] if found else None


def of_incident(case: Case, incident: Incident) -> Failure:
    pod = incident.record.object
    cause = deleted_by_hand() if incident.harm is Harm.DELETION else cause_of(pod, incident.end)
    place = case.layout.place(pod) or Place(role=TASK, rank=incident.rank, index=incident.rank)
    at = incident.happened_at or incident.seen_at
    return _failure(case, rank_status(place, incident.record), cause, at, incident.end)


def of_waiting(waiting: Waiting, at: datetime | None = None) -> Failure:
    """The failure of a workload that was given up because it waits for what can't come."""
    return Failure(
        category=waiting.category,
        summary=waiting.summary,
        resolution=waiting.detail or "Correct what the message names, and run it again.",
        is_retryable=not waiting.is_hopeless,
        at=at,
    )


def _failure(case: Case, rank: RankStatus, cause: Cause, at: datetime | None, end: End | None = None) -> Failure:
    summary = sentence(f"{who(rank, case.layout.size)} {cause.what}")
    return Failure(
        category=cause.category,
        summary=summary,
        resolution=sentence(cause.resolution),
        role=rank.role,
        rank=rank.rank,
        pod=rank.pod,
        node=rank.node,
        exit_code=end.exit_code if end else None,
        reason=cause.reason,
        at=at,
        last_lines=log_tail(end),
        events=related_events(case.observation.events, rank.pod_uid, summary, rank.started_at),
    )


def _deadline(case: Case, first: Incident | None) -> Failure | None:
    """A Job's own time limit: its pods are deleted for it, which is no harm of theirs; one that failed before goes first."""
    failed = failed_jobs(case.jobs)
    if not failed or failed[0][1].reason != "DeadlineExceeded":
        return None
    job, condition = failed[0]
    own = first and first.harm is not Harm.DELETION and first.happened_at
    if own and condition.since and own <= condition.since:
        return None
    role, _ = case.layout.place_of_job_name(name(job))
    limit = integer(job, "spec", "activeDeadlineSeconds")
    words = f"{_job_words(role)} timed out" + (f" after {limit} s" if limit else "")
    return Failure(
        category=Category.DEADLINE,
        summary=f"{words} (DeadlineExceeded, Job {name(job)}).",
        resolution="Raise the time limit of the step (@timeout), or let it do less.",
        role=role,
        reason=condition.reason,
        at=condition.since,
    )


def _of_named_pod(case: Case, named: PodFailure) -> Failure:
    """The pod that a podFailurePolicy names: its record where there is one, else what the message says."""
    for record in (*case.chosen.values(), *case.observation.pods):
        place = case.layout.place(record.object)
        if place and name(record.object) == named.pod:
            status = rank_status(place, record)
            return _failure(case, status, _cause_of_named(named, record), named.at, _end_of_named(named, record))
    place = case.layout.place_of_pod_name(named.pod)
    cause, end = _cause_of_named(named, None), _end_of_named(named, None)
    if place:
        status = RankStatus(role=place.role, rank=place.rank, index=place.index, pod=named.pod)
        return _failure(case, status, cause, named.at, end)
    return Failure(
        category=cause.category,
        summary=sentence(f"Pod {named.pod} {cause.what}"),
        resolution=sentence(cause.resolution),
        pod=named.pod,
        exit_code=end.exit_code if end else None,
        reason=cause.reason,
        at=named.at,
    )


def _cause_of_named(named: PodFailure, record: PodRecord | None) -> Cause:
    """A pod that failed stays, so one that ended on SIGTERM and is gone was deleted."""
    if _was_deleted(named, record):
        return deleted_by_hand()
    if record is not None:
        return cause_of(record.object, _end_of_named(named, record))
    if named.condition:
        return Cause(
            category=Category.EVICTED,
            what="was disrupted by the cluster: evicted, preempted, or lost with its node",
            resolution=RUN_AGAIN,
            reason=named.condition,
        )
    return cause_of_exit(End(exit_code=named.exit_code, container=named.container))


def _was_deleted(named: PodFailure, record: PodRecord | None) -> bool:
    """The exit code of what was told to stop, and nothing but the deletion explains it."""
    if record is None:
        return named.exit_code == SIGTERM
    end = end_of(record.object) or End(exit_code=named.exit_code)
    is_first = record.first_seen_deleting is not None and not record.terminated_before_deletion
    return is_first and is_killed(end) and disruption(record.object) is None


def _end_of_named(named: PodFailure, record: PodRecord | None) -> End | None:
    end = end_of(record.object) if record else None
    return end or (End(exit_code=named.exit_code) if named.exit_code is not None else None)


def _of_jobs(case: Case, terminal: Condition | None) -> Failure:
    """No pod tells anything: the Job that failed first, else the one that the JobSet names."""
    failed = failed_jobs(case.jobs)
    job = failed[0][0] if failed else {}
    condition = failed[0][1] if failed else terminal
    job_name = name(job) or job_named_in(terminal.message if terminal else "")
    role, place = case.layout.place_of_job_name(job_name)
    index = first_failed_index(job)
    group = case.layout.group(role or label(job, labels.JOBSET_GROUP))
    if index is not None and group:
        place = group.place(integer(label(job, labels.JOBSET_JOB_INDEX)) or 0, index)
    subject = (
        who(RankStatus(role=place.role, rank=place.rank, index=place.index), case.layout.size) if place else _job_words(role)
    )
    reason, message = (condition.reason, condition.message) if condition else ("", "")
    return Failure(
        category=Category.UNKNOWN,
        summary=sentence(f"{subject} failed, and no pod is left to say why" + (f" ({message})" if message else "")),
        resolution="Run it again: while it is watched, the cause is kept.",
        role=role,
        rank=place.rank if place else None,
        reason=reason,
        at=condition.since if condition else None,
    )


def _job_words(role: str) -> str:
    return {"": "The workload", CONTROL: "Control", TASK: "The task"}.get(role, f"A rank of {role}")


def _has_condition(workload: KubernetesObject | None, kind: str) -> bool:
    return kind in conditions(workload) or false_condition(workload, kind) is not None
