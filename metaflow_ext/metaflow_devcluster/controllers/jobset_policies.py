"""JobSet's success and failure policies: what ended Jobs mean for the whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .objects import Object, condition, labels_of, name_of, spec_of, status_of

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
FAIL, RESTART, RESTART_UNCOUNTED = "FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts"


@dataclass(frozen=True)
class Failure:
    """The JobSet fails."""

    reason: str
    message: str


@dataclass(frozen=True)
class Restart:
    """All Jobs are made anew; `counts` says whether it uses up maxRestarts."""

    reason: str
    message: str
    counts: bool


def first_failed(jobs: Sequence[Object]) -> Object:
    """By the time of the Failed condition, which has a resolution of one second: ties are arbitrary."""
    return min(jobs, key=lambda job: ((condition(job, "Failed") or {}).get("lastTransitionTime", ""), name_of(job)))


def is_successful(jobset: Object, succeeded: Sequence[Object]) -> bool:
    """Whether the Jobs that succeeded satisfy the success policy; never without any."""
    policy = spec_of(jobset).get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or []
    matching = [job for job in succeeded if not targets or labels_of(job).get(REPLICATED_JOB) in targets]
    if policy.get("operator") == "Any":
        return bool(matching)
    wanted = sum(
        _replicas(rjob) for rjob in spec_of(jobset).get("replicatedJobs") or [] if not targets or rjob["name"] in targets
    )
    return bool(succeeded) and len(matching) >= wanted


def failure_decision(jobset: Object, failed: Sequence[Object]) -> Failure | Restart:
    """What failed Jobs (at least one) lead to."""
    policy = spec_of(jobset).get("failurePolicy")
    if not policy:
        text = "jobset failed due to one or more job failures"
        return Failure("FailedJobs", _naming(text, first_failed(failed)))
    action, job = _matching_rule(policy, failed)
    text = f"applying {action} failure policy action"
    reason = f"{action}FailurePolicyAction"
    if action == FAIL:
        return Failure(reason, _naming(text, job))
    if action == RESTART_UNCOUNTED:
        return Restart(reason, _naming(text, job), counts=False)
    used = status_of(jobset).get("restartsCountTowardsMax", 0)
    if used >= (policy.get("maxRestarts") or 0):
        exhausted = "jobset failed due to reaching max number of restarts"
        return Failure("ReachedMaxRestarts", _naming(exhausted, job))
    return Restart(reason, _naming(text, job), counts=True)


def _matching_rule(policy: Object, failed: Sequence[Object]) -> tuple[str, Object]:
    for rule in policy.get("rules") or []:
        matching = [job for job in failed if _applies(rule, job)]
        if matching:
            return rule["action"], first_failed(matching)
    return RESTART, first_failed(failed)


def _applies(rule: Object, job: Object) -> bool:
    failed = condition(job, "Failed") or {}
    targets, reasons = rule.get("targetReplicatedJobs"), rule.get("onJobFailureReasons")
    patterns = rule.get("onJobFailureMessagePatterns")
    if targets and labels_of(job).get(REPLICATED_JOB) not in targets:
        return False
    if reasons and failed.get("reason") not in reasons:
        return False
    return not patterns or any(re.search(pattern, failed.get("message", "")) for pattern in patterns)


def _naming(text: str, job: Object) -> str:
    return f"{text} (first failed job: {name_of(job)})"


def _replicas(rjob: Object) -> int:
    replicas = rjob.get("replicas")
    return 1 if replicas is None else int(replicas)
