"""The Job controller's decisions: a Job and its pods in, what to do about them out.

One call makes one step; the order of the writes is that of the real controller, which clients can observe:
pods are created or deleted, then the status is written with the pods that have just ended listed as uncounted,
then those pods lose their tracking finalizer, then they are counted, and only when all pods of the Job have ended
does the terminal condition follow its target (FailureTarget to Failed, SuccessCriteriaMet to Complete).
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field

from . import pod_failure_policy
from .indexes import format_indexes, parse_indexes
from .job_pods import failure_counts, is_indexed
from .objects import (
    Object,
    completion_index,
    condition,
    format_time,
    is_active,
    is_being_deleted,
    is_finished_job,
    is_terminal,
    is_tracked,
    is_true,
    name_of,
    parse_time,
    phase_of,
    spec_of,
    status_of,
    uid_of,
)

MAX_POD_BACKOFF = 600.0


@dataclass(frozen=True, kw_only=True)
class NewPod:
    """A pod to create: its completion index, and earlier failures of that index (counted, ignored)."""

    index: int | None
    failures: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Backoff:
    """Failures since the last success and when the newest was; remembered by the caller between steps."""

    failures: int = 0
    last: datetime.datetime | None = None

    def wait(self, now: datetime.datetime, first: float) -> float:
        """Seconds until a failed pod may be replaced: doubling with every failure."""
        if not self.failures or self.last is None:
            return 0.0
        wait = min(first * 2.0 ** min(self.failures - 1, 20), MAX_POD_BACKOFF)
        return max(wait - (now - self.last).total_seconds(), 0.0)


@dataclass(kw_only=True)
class Actions:
    """In the order of execution. `status` assumes that every pod in `create` could be created."""

    untrack_first: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    create: list[NewPod] = field(default_factory=list)
    status: Object = field(default_factory=dict)
    untrack: list[str] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    backoff: Backoff = Backoff()
    after: float | None = None

    def look_again(self, seconds: float) -> None:
        self.after = seconds if self.after is None else min(self.after, seconds)


@dataclass(frozen=True)
class _Verdict:
    """The target condition of a Job that is about to end."""

    type: str
    reason: str
    message: str


_COMPLETED = _Verdict("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")
_BACKOFF = _Verdict("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_DEADLINE = _Verdict("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
_MAX_INDEXES = _Verdict(
    "FailureTarget", "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
)
_FAILED_INDEXES = _Verdict("FailureTarget", "FailedIndexes", "Job has failed indexes")
_TERMINAL = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


def reconcile(
    job: Object,
    pods: Sequence[Object],
    now: datetime.datetime,
    *,
    backoff: Backoff = Backoff(),
    first_backoff: float = 10.0,
) -> Actions:
    """The next step for a Job, given all pods it controls and the back-off remembered from the step before."""
    return _Reconciliation(job, pods, now, backoff, first_backoff).run()


class _Reconciliation:
    """One step, with what it knows and what it has decided so far."""

    def __init__(
        self, job: Object, pods: Sequence[Object], now: datetime.datetime, backoff: Backoff, first_backoff: float
    ) -> None:
        self.job, self.spec, self.now, self.first_backoff = job, spec_of(job), now, first_backoff
        self.pods = sorted(pods, key=lambda pod: (completion_index(pod) or 0, name_of(pod)))
        self.old = status_of(job)
        self.status: Object = copy.deepcopy(self.old)
        self.actions = Actions(status=self.status, backoff=backoff)
        self.active = [pod for pod in self.pods if is_active(pod)]
        self.terminating = [pod for pod in self.pods if is_being_deleted(pod) and not is_terminal(pod)]
        self.is_suspended = bool(self.spec.get("suspend"))
        replacement = self.spec.get("podReplacementPolicy")
        self.waits_for_end = replacement == "Failed" or (not replacement and bool(self.spec.get("podFailurePolicy")))

    def run(self) -> Actions:
        if is_finished_job(self.job):
            self.actions.untrack = [name_of(pod) for pod in self.pods if is_tracked(pod)]
            return self.actions
        if is_being_deleted(self.job):
            self.actions.untrack_first = [name_of(pod) for pod in self.pods if is_tracked(pod)]
            self._write_counters(len(self.active), len(self.terminating))
            return self.actions
        self._count_untracked()
        self._start()
        succeeded, failed = self._new_ends()
        indexes = self._indexes(succeeded)
        failed_indexes = self._failed_indexes(failed)
        verdict = self._verdict(succeeded, failed, indexes, failed_indexes)
        active, terminating = len(self.active), len(self.terminating)
        if verdict is None and not self.is_suspended:
            active = self._manage(indexes, failed_indexes, succeeded)
            verdict = self._completion(succeeded, indexes)
            terminating += len(self.actions.delete)
        elif verdict is None:
            self._delete_untracked(self.active)
            active, terminating = 0, terminating + len(self.active)
        if verdict is not None:
            doomed = [pod for pod in self.active if name_of(pod) not in self.actions.delete]
            self.actions.delete += [name_of(pod) for pod in doomed]
            active, terminating = 0, terminating + len(doomed)
            if verdict.type == "FailureTarget":
                failed = [pod for pod in self.pods if self._is_uncounted(pod) and phase_of(pod) != "Succeeded"]
            self._set_condition(verdict.type, verdict.reason, verdict.message)
        else:
            self._note_suspension()
        self._count(succeeded, failed, indexes, failed_indexes)
        self._write_counters(active, terminating)
        self._finish(verdict, active, terminating)
        return self.actions

    # -- counting pods that ended

    def _count_untracked(self) -> None:
        """Uncounted pods that have lost their finalizer (or are gone) are added to the counters."""
        uncounted = self.status.setdefault("uncountedTerminatedPods", {})
        tracked = {uid_of(pod) for pod in self.pods if is_tracked(pod)}
        for kind in ("succeeded", "failed"):
            listed = uncounted.get(kind) or []
            waiting = [uid for uid in listed if uid in tracked]
            if len(waiting) < len(listed):
                self.status[kind] = self.status.get(kind, 0) + len(listed) - len(waiting)
            if waiting:
                uncounted[kind] = waiting
            else:
                uncounted.pop(kind, None)

    def _is_uncounted(self, pod: Object) -> bool:
        listed = self.status["uncountedTerminatedPods"]
        return is_tracked(pod) and uid_of(pod) not in [*listed.get("succeeded", []), *listed.get("failed", [])]

    def _is_failed(self, pod: Object) -> bool:
        if phase_of(pod) == "Failed":
            return True
        return is_being_deleted(pod) and not self.waits_for_end and phase_of(pod) != "Succeeded"

    def _new_ends(self) -> tuple[list[Object], list[Object]]:
        uncounted = [pod for pod in self.pods if self._is_uncounted(pod)]
        succeeded = [pod for pod in uncounted if phase_of(pod) == "Succeeded"]
        failed = [pod for pod in uncounted if self._is_failed(pod)]
        for pod in sorted([*succeeded, *failed], key=self._end_time):
            before = self.actions.backoff
            failures = 0 if phase_of(pod) == "Succeeded" else before.failures + 1
            self.actions.backoff = Backoff(failures, self._end_time(pod))
        return succeeded, failed

    def _end_time(self, pod: Object) -> datetime.datetime:
        ended = [
            moment
            for container in status_of(pod).get("containerStatuses") or []
            if (moment := parse_time(((container.get("state") or {}).get("terminated") or {}).get("finishedAt")))
        ]
        return min(max(ended, default=self.now), self.now)

    def _indexes(self, succeeded: list[Object]) -> set[int]:
        found = parse_indexes(self.old.get("completedIndexes"))
        completions = self.spec.get("completions") or 0
        new = {index for pod in succeeded if (index := completion_index(pod)) is not None and index < completions}
        return found | new if is_indexed(self.job) else set()

    def _failed_indexes(self, failed: list[Object]) -> set[int] | None:
        """Indexes that have used up backoffLimitPerIndex; None for Jobs without it."""
        limit = self.spec.get("backoffLimitPerIndex")
        if limit is None:
            return None
        found = parse_indexes(self.old.get("failedIndexes"))
        if is_true(self.job, "FailureTarget"):  # pods that end now were ended by that
            return found
        for pod in failed:
            index, rule = completion_index(pod), self._rule(pod)
            ignored = rule is not None and rule.action == "Ignore"
            is_spent = failure_counts(pod)[0] >= limit and not ignored
            if index is not None and (is_spent or (rule is not None and rule.action == "FailIndex")):
                found.add(index)
        return found

    def _rule(self, pod: Object) -> pod_failure_policy.Match | None:
        return pod_failure_policy.match(self.spec.get("podFailurePolicy"), pod)

    def _counts_as_failure(self, pod: Object) -> bool:
        rule = self._rule(pod)
        return rule is None or rule.action != "Ignore"

    def _count(self, succeeded: list[Object], failed: list[Object], indexes: set[int], failed_indexes: set[int] | None) -> None:
        uncounted = self.status["uncountedTerminatedPods"]
        ends_badly = is_true(self.job, "FailureTarget") or "FailureTarget" in self._new_conditions()
        counted = [pod for pod in failed if ends_badly or self._counts_as_failure(pod)]
        if counted:
            uncounted["failed"] = [*uncounted.get("failed", []), *map(uid_of, counted)]
        if is_indexed(self.job):
            if indexes:
                self.status["completedIndexes"] = format_indexes(indexes)
                self.status["succeeded"] = len(indexes)
        elif succeeded:
            uncounted["succeeded"] = [*uncounted.get("succeeded", []), *map(uid_of, succeeded)]
        if failed_indexes is not None:
            self.status["failedIndexes"] = format_indexes(failed_indexes)
        listed = {*uncounted.get("failed", []), *uncounted.get("succeeded", [])}
        done = {uid_of(pod) for pod in [*succeeded, *failed]} | listed
        released = [name_of(pod) for pod in self.pods if is_tracked(pod) and uid_of(pod) in done]
        self.actions.untrack = [name for name in released if name not in self.actions.untrack_first]

    # -- verdicts

    def _verdict(
        self, succeeded: list[Object], failed: list[Object], indexes: set[int], failed_indexes: set[int] | None
    ) -> _Verdict | None:
        for kind in _TERMINAL:
            known = condition(self.job, kind)
            if known is not None and known["status"] == "True":
                return _Verdict(kind, known["reason"], known["message"])
        # All pods that are there, also those that a suspension deletes and nobody counts: see getFailJobMessage.
        ended = [pod for pod in self.pods if self._is_failed(pod)]
        by_policy = next((rule for pod in ended if (rule := self._rule(pod)) and rule.action == "FailJob"), None)
        if by_policy:
            return _Verdict("FailureTarget", "PodFailurePolicy", by_policy.message)
        counted = sum(1 for pod in failed if self._counts_as_failure(pod))
        total = self.status.get("failed", 0) + len(self.status["uncountedTerminatedPods"].get("failed", [])) + counted
        if total > self._backoff_limit() or self._restarts_exceed_limit():
            return _BACKOFF
        if self._is_past_deadline():
            return _DEADLINE
        if failed_indexes:
            limit = self.spec.get("maxFailedIndexes")
            if limit is not None and len(failed_indexes) > limit:
                return _MAX_INDEXES
            if len(failed_indexes) + len(indexes) >= (self.spec.get("completions") or 0):
                return _FAILED_INDEXES
        return self._success_policy(indexes)

    def _backoff_limit(self) -> float:
        if self.spec.get("backoffLimitPerIndex") is not None and self.spec.get("backoffLimit") is None:
            return float("inf")
        limit = self.spec.get("backoffLimit")
        return 6 if limit is None else float(limit)

    def _restarts_exceed_limit(self) -> bool:
        """Pods that restart in place (OnFailure) use up the limit with their restarts."""
        if self.spec["template"]["spec"].get("restartPolicy") != "OnFailure":
            return False
        restarts = 0
        for pod in self.pods:
            found = status_of(pod)
            for container in [*(found.get("initContainerStatuses") or []), *(found.get("containerStatuses") or [])]:
                restarts += int(container.get("restartCount", 0))
        limit = self._backoff_limit()
        return bool(restarts > 0 if limit == 0 else restarts >= limit)

    def _is_past_deadline(self) -> bool:
        deadline, started = self.spec.get("activeDeadlineSeconds"), parse_time(self.status.get("startTime"))
        if deadline is None or self.is_suspended or started is None:
            return False
        left = float(deadline) - (self.now - started).total_seconds()
        if left > 0:
            self.actions.look_again(left)
        return left <= 0

    def _success_policy(self, indexes: set[int]) -> _Verdict | None:
        for number, rule in enumerate((self.spec.get("successPolicy") or {}).get("rules") or []):
            wanted = parse_indexes(rule["succeededIndexes"]) if rule.get("succeededIndexes") else None
            done = indexes if wanted is None else indexes & wanted
            enough = rule.get("succeededCount", len(wanted) if wanted is not None else 1)
            if len(done) >= enough:
                return _Verdict("SuccessCriteriaMet", "SuccessPolicy", f"Matched rules at index {number}")
        return None

    def _completion(self, succeeded: list[Object], indexes: set[int]) -> _Verdict | None:
        completions = self.spec.get("completions")
        done = len(indexes) if is_indexed(self.job) else self._succeeded_so_far() + len(succeeded)
        if completions is None:
            return _COMPLETED if done and not self.active and not self.actions.create else None
        return _COMPLETED if done >= completions else None

    def _succeeded_so_far(self) -> int:
        waiting = self.status["uncountedTerminatedPods"].get("succeeded", [])
        return int(self.status.get("succeeded", 0)) + len(waiting)

    # -- pods to have

    def _manage(self, indexes: set[int], failed_indexes: set[int] | None, succeeded: list[Object]) -> int:
        """Create or delete pods so that as many run as shall; returns how many then do."""
        parallelism = self.spec.get("parallelism")
        parallelism = 1 if parallelism is None else parallelism
        completions = self.spec.get("completions")
        done = len(indexes) if is_indexed(self.job) else self._succeeded_so_far() + len(succeeded)
        if completions is None:
            wanted = min(parallelism, len(self.active)) if done else parallelism
        else:
            wanted = min(parallelism, completions - done - len(failed_indexes or ()))
        surplus = len(self.active) - max(wanted, 0)
        if surplus > 0:
            self._delete_untracked(sorted(self.active, key=_importance)[:surplus])
            return len(self.active) - surplus
        held = len(self.active) + (len(self.terminating) if self.waits_for_end else 0)
        missing = wanted - held
        if missing <= 0:
            return len(self.active)
        delay = self.actions.backoff.wait(self.now, self.first_backoff)
        if delay > 0:
            self.actions.look_again(delay)
            return len(self.active)
        self.actions.create = self._new_pods(missing, indexes | (failed_indexes or set()))
        return len(self.active) + len(self.actions.create)

    def _new_pods(self, count: int, ended: set[int]) -> list[NewPod]:
        if not is_indexed(self.job):
            return [NewPod(index=None)] * count
        holders = [*self.active, *(self.terminating if self.waits_for_end else [])]
        taken = ended | {index for pod in holders if (index := completion_index(pod)) is not None}
        free = [index for index in range(self.spec.get("completions") or 0) if index not in taken][:count]
        return [NewPod(index=index, failures=self._failures_of(index)) for index in free]

    def _failures_of(self, index: int) -> tuple[int, int]:
        if self.spec.get("backoffLimitPerIndex") is None:
            return (0, 0)
        counts = (0, 0)
        for pod in self.pods:
            if completion_index(pod) == index and self._is_failed(pod):
                counted, ignored = failure_counts(pod)
                new = (counted + 1, ignored) if self._counts_as_failure(pod) else (counted, ignored + 1)
                counts = max(counts, new)
        return counts

    def _delete_untracked(self, pods: Sequence[Object]) -> None:
        """Deletions that are not failures: the pods lose their finalizer first and are never counted."""
        self.actions.untrack_first += [name_of(pod) for pod in pods]
        self.actions.delete += [name_of(pod) for pod in pods]

    # -- the status

    def _start(self) -> None:
        if not self.is_suspended and not self.status.get("startTime"):
            self.status["startTime"] = format_time(self.now)

    def _note_suspension(self) -> None:
        known = condition(self.job, "Suspended")
        if self.is_suspended and not is_true(self.job, "Suspended"):
            self._set_condition("Suspended", "JobSuspended", "Job suspended")
            self.status.pop("startTime", None)
            self.actions.events.append(("Normal", "Suspended", "Job suspended"))
        elif not self.is_suspended and known is not None and known["status"] == "True":
            self._set_condition("Suspended", "JobResumed", "Job resumed", "False")
            self.status["startTime"] = format_time(self.now)
            self.actions.events.append(("Normal", "Resumed", "Job resumed"))

    def _write_counters(self, active: int, terminating: int) -> None:
        self.status["terminating"] = terminating
        gone = {*self.actions.delete}
        self.status["ready"] = sum(1 for pod in self.active if is_true(pod, "Ready") and name_of(pod) not in gone)
        self.status.setdefault("uncountedTerminatedPods", {})
        if active:
            self.status["active"] = active
        else:
            self.status.pop("active", None)

    def _finish(self, verdict: _Verdict | None, active: int, terminating: int) -> None:
        """The terminal condition follows its target once everything has been counted and said to have ended."""
        if verdict is None or not is_true(self.job, verdict.type):
            return
        if active or terminating or self.old.get("active") or self.old.get("terminating"):
            return
        if self.actions.untrack or self.status["uncountedTerminatedPods"]:
            return
        terminal = _TERMINAL[verdict.type]
        self._set_condition(terminal, verdict.reason, verdict.message)
        if terminal == "Complete":
            self.status["completionTime"] = format_time(self.now)
            self.actions.events.append(("Normal", "Completed", "Job completed"))
        else:
            self.actions.events.append(("Warning", verdict.reason, verdict.message))

    def _new_conditions(self) -> set[str]:
        return {entry["type"] for entry in self.status.get("conditions") or []}

    def _set_condition(self, kind: str, reason: str, message: str, status: str = "True") -> None:
        conditions = self.status.setdefault("conditions", [])
        known = next((entry for entry in conditions if entry["type"] == kind), None)
        if known is not None and known["status"] == status and known["reason"] == reason:
            return
        stamp = format_time(self.now)
        new = {"type": kind, "status": status, "lastProbeTime": stamp, "lastTransitionTime": stamp}
        new.update(reason=reason, message=message)
        if known is None:
            conditions.append(new)
        else:
            known.update(new)


def _importance(pod: Object) -> tuple[bool, bool, int]:
    """Sort key for pods too many: unscheduled, then not ready, then the highest index go first."""
    index = completion_index(pod)
    return bool(spec_of(pod).get("nodeName")), is_true(pod, "Ready"), -(index if index is not None else 0)
