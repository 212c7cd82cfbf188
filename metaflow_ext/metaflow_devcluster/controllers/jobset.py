"""The JobSet controller's decisions: a JobSet and its Jobs in, what to do about them out.

The order is the real controller's: counters, then deletion of what is left over, then the failure policy, then the
success policy, then Service and Jobs, then suspension. A refused Job ends the step without a status, so the status
of a JobSet with a bad template stays absent for ever.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from .jobset_children import RESTART_ATTEMPT, has_dns, job_names, replicas_of
from .jobset_policies import REPLICATED_JOB, Restart, failure_decision, is_successful
from .objects import (
    Object,
    condition,
    format_time,
    is_finished_job,
    is_finished_jobset,
    is_true,
    labels_of,
    name_of,
    spec_of,
    status_of,
)

CONTROLLER = "jobset.sigs.k8s.io/jobset-controller"


@dataclass(frozen=True, kw_only=True)
class JobToCreate:
    """Job `index` of the replicated job of this name."""

    replicated_job: str
    index: int


@dataclass(kw_only=True)
class Actions:
    """In the order of execution; `status` is written only when all Jobs could be created."""

    delete: list[str] = field(default_factory=list)
    needs_service: bool = False
    create: list[JobToCreate] = field(default_factory=list)
    suspend: list[str] = field(default_factory=list)
    resume: list[tuple[str, str]] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    events: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass
class _Children:
    """The Jobs by what has become of them; `previous` belong to an attempt before the last restart."""

    active: list[Object] = field(default_factory=list)
    succeeded: list[Object] = field(default_factory=list)
    failed: list[Object] = field(default_factory=list)
    previous: list[Object] = field(default_factory=list)

    def names(self) -> set[str]:
        return {name_of(job) for job in [*self.active, *self.succeeded, *self.failed, *self.previous]}


def sort_children(jobset: Object, jobs: Sequence[Object]) -> _Children:
    restarts = status_of(jobset).get("restarts", 0)
    children = _Children()
    for job in jobs:
        if int(labels_of(job).get(RESTART_ATTEMPT, "0")) < restarts:
            children.previous.append(job)
        elif not is_finished_job(job):
            children.active.append(job)
        elif is_true(job, "Complete"):
            children.succeeded.append(job)
        else:
            children.failed.append(job)
    return children


def reconcile(jobset: Object, jobs: Sequence[Object], now: datetime.datetime) -> Actions:
    """The next step for a JobSet, given all Jobs that it controls."""
    actions = Actions(status=copy.deepcopy(status_of(jobset)))
    children = sort_children(jobset, jobs)
    counts = replicated_jobs_status(jobset, children)
    actions.status["replicatedJobsStatus"] = counts
    actions.status.setdefault("restarts", 0)
    write = _Writer(actions, now)
    if is_finished_jobset(jobset):
        actions.delete = [name_of(job) for job in children.active]
        return actions
    actions.delete = [name_of(job) for job in children.previous]
    if children.failed:
        _fail_or_restart(jobset, children.failed, write)
        return actions
    if is_successful(jobset, children.succeeded):
        message = "jobset completed successfully"
        write.condition("Completed", "AllJobsCompleted", message)
        actions.status["terminalState"] = "Completed"
        return actions
    actions.needs_service = has_dns(jobset)
    _plan_jobs(jobset, children, counts, write)
    if spec_of(jobset).get("suspend"):
        actions.suspend = [name_of(job) for job in children.active if not spec_of(job).get("suspend")]
        write.condition("Suspended", "SuspendedJobs", "jobset is suspended")
    else:
        _resume(jobset, children, counts, write)
    return actions


def replicated_jobs_status(jobset: Object, children: _Children) -> list[Object]:
    """Counters in Jobs, not pods; by name, descending, whatever the order in the spec is."""
    found: dict[str, Object] = {}
    for rjob in spec_of(jobset).get("replicatedJobs") or []:
        zero = {"active": 0, "failed": 0, "name": rjob["name"], "ready": 0, "succeeded": 0, "suspended": 0}
        found[rjob["name"]] = zero
    for kind, jobs in (("succeeded", children.succeeded), ("failed", children.failed)):
        for job in jobs:
            found[labels_of(job).get(REPLICATED_JOB, "")][kind] += 1
    for job in children.active:
        counts, status = found[labels_of(job).get(REPLICATED_JOB, "")], status_of(job)
        counts["active"] += 1 if status.get("active") else 0
        counts["ready"] += 1 if _is_ready(job) else 0
        counts["suspended"] += 1 if spec_of(job).get("suspend") else 0
    return sorted(found.values(), key=lambda counts: str(counts["name"]), reverse=True)


def _is_ready(job: Object) -> bool:
    """All its pods are ready or have succeeded; stays true between the last success and Complete."""
    spec, status = spec_of(job), status_of(job)
    parallelism = spec.get("parallelism")
    pods = 1 if parallelism is None else parallelism
    if spec.get("completions") is not None:
        pods = min(pods, spec["completions"])
    return bool(status) and status.get("succeeded", 0) + status.get("ready", 0) >= pods


class _Writer:
    """Conditions and the Events that go with them."""

    def __init__(self, actions: Actions, now: datetime.datetime) -> None:
        self.actions, self._now = actions, now

    def condition(self, kind: str, reason: str, message: str, status: str = "True", type: str = "Normal") -> None:
        """Set a condition; an Event tells of it only when it is new or has changed."""
        conditions = self.actions.status.setdefault("conditions", [])
        known = next((entry for entry in conditions if entry["type"] == kind), None)
        if known is not None and known["status"] == status:
            return
        new = {"lastTransitionTime": format_time(self._now), "message": message, "reason": reason}
        new.update(status=status, type=kind)
        if known is None:
            conditions.append(new)
        else:
            known.update(new)
        self.event(type, reason, message)

    def turn_off(self, kind: str) -> None:
        """Set status False and leave reason and message, without an Event."""
        for entry in self.actions.status.get("conditions") or []:
            if entry["type"] == kind and entry["status"] == "True":
                entry.update(status="False", lastTransitionTime=format_time(self._now))

    def event(self, type: str, reason: str, message: str) -> None:
        self.actions.events.append((type, reason, message))


def _fail_or_restart(jobset: Object, failed: Sequence[Object], write: _Writer) -> None:
    status = write.actions.status
    decision = failure_decision(jobset, failed)
    if isinstance(decision, Restart):
        status["restarts"] += 1
        if decision.counts:
            status["restartsCountTowardsMax"] = status.get("restartsCountTowardsMax", 0) + 1
        write.event("Warning", decision.reason, decision.message)
        return
    write.condition("Failed", decision.reason, decision.message, type="Warning")
    status["terminalState"] = "Failed"


def _plan_jobs(jobset: Object, children: _Children, counts: list[Object], write: _Writer) -> None:
    spec = spec_of(jobset)
    if children.previous and (spec.get("failurePolicy") or {}).get("restartStrategy") == "BlockingRecreate":
        return
    by_name = {entry["name"]: entry for entry in counts}
    existing = children.names()
    in_order = _is_in_order(jobset) and not spec.get("suspend")
    for rjob in spec.get("replicatedJobs") or []:
        if in_order and _all_started(rjob, by_name):
            continue
        if not _dependencies_reached(rjob, spec, by_name):
            continue
        for index, name in enumerate(job_names(jobset, rjob)):
            if name not in existing:
                write.actions.create.append(JobToCreate(replicated_job=rjob["name"], index=index))
        if in_order:
            text = "in order startup policy is in progress"
            write.condition("StartupPolicyInProgress", "InOrderStartupPolicyInProgress", text)
            return
    if in_order:
        write.turn_off("StartupPolicyInProgress")
        text = "in order startup policy has completed"
        write.condition("StartupPolicyCompleted", "InOrderStartupPolicyCompleted", text)


def _is_in_order(jobset: Object) -> bool:
    return (spec_of(jobset).get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"


def _all_started(rjob: Object, by_name: dict[str, Object]) -> bool:
    counts = by_name[rjob["name"]]
    return bool(replicas_of(rjob) == counts["failed"] + counts["ready"] + counts["succeeded"])


def _dependencies_reached(rjob: Object, spec: Object, by_name: dict[str, Object]) -> bool:
    replicas = {other["name"]: replicas_of(other) for other in spec.get("replicatedJobs") or []}
    for dependency in rjob.get("dependsOn") or []:
        counts = by_name.get(dependency["name"], {})
        done = counts.get("succeeded", 0)
        if dependency.get("status") == "Ready":
            done += counts.get("ready", 0) + counts.get("failed", 0)
        if done < replicas.get(dependency["name"], 0):
            return False
    return True


def _resume(jobset: Object, children: _Children, counts: list[Object], write: _Writer) -> None:
    """Resume suspended Jobs, with the pod template as it is now (it may have changed while suspended)."""
    by_name = {entry["name"]: entry for entry in counts}
    for rjob in spec_of(jobset).get("replicatedJobs") or []:
        if _is_in_order(jobset) and _all_started(rjob, by_name):
            continue
        for job in children.active:
            if labels_of(job).get(REPLICATED_JOB) == rjob["name"] and spec_of(job).get("suspend"):
                write.actions.resume.append((name_of(job), rjob["name"]))
        if _is_in_order(jobset):
            break
    if condition(jobset, "Suspended") is not None:
        write.condition("Suspended", "ResumeJobs", "jobset is resumed", "False")
