"""Whether a JobSet will start again after a Job has failed, as its controller decides: spec.failurePolicy.

A Job that failed is final only where no restart is left. Anything not understood counts as a restart left: nothing is called
failed too early, the JobSet's own condition still tells.
Source: JobSet pkg/controllers/failure_policy.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spec import labels
from .model import KubernetesObject
from .pods import attempt_of
from .reading import Condition, dig, integer, label, mapping, mappings, text


def restarts_of(jobset: KubernetesObject) -> int:
    return max(integer(jobset, "status", "restarts") or 0, 0)


def is_restart_left(jobset: KubernetesObject, job: KubernetesObject, failed: Condition) -> bool:
    """`failed` is the Job's condition FailureTarget or Failed: both have the reason and message that rules look at."""
    if not mapping(jobset, "spec", "failurePolicy"):
        return False
    for rule in mappings(jobset, "spec", "failurePolicy", "rules"):
        if _applies(rule, job, failed):
            return _leaves_restart(text(rule, "action"), jobset, job)
    return _leaves_restart("RestartJobSet", jobset, job)


def may_restart(jobset: KubernetesObject) -> bool:
    """Whether any failure at all could still lead to a restart."""
    rules = mappings(jobset, "spec", "failurePolicy", "rules")
    actions = [text(rule, "action") for rule in rules] + ["RestartJobSet"]
    has_policy = bool(mapping(jobset, "spec", "failurePolicy"))
    return has_policy and any(_leaves_restart(action, jobset, {}) for action in actions)


def _leaves_restart(action: str, jobset: KubernetesObject, job: KubernetesObject) -> bool:
    if action == "FailJobSet":
        return False
    if action != "RestartJobSet":
        return True
    done = _counted_restarts(jobset)
    if attempt_of(job) > restarts_of(jobset):
        done += 1  # this Job is newer than the JobSet we saw
    return done < (integer(jobset, "spec", "failurePolicy", "maxRestarts") or 0)


def _counted_restarts(jobset: KubernetesObject) -> int:
    """status.restartsCountTowardsMax, which is left out when it is 0, and by versions that had no rules."""
    counted = integer(jobset, "status", "restartsCountTowardsMax")
    if counted is not None:
        return counted
    rules = mappings(jobset, "spec", "failurePolicy", "rules")
    has_free_restarts = any(text(rule, "action").endswith("IgnoreMaxRestarts") for rule in rules)
    return 0 if has_free_restarts else restarts_of(jobset)


def _applies(rule: Mapping[str, Any], job: KubernetesObject, failed: Condition) -> bool:
    reasons, roles = dig(rule, "onJobFailureReasons"), dig(rule, "targetReplicatedJobs")
    patterns = dig(rule, "onJobFailureMessagePatterns")
    return (
        _is_among(failed.reason, reasons)
        and _is_among(label(job, labels.JOBSET_GROUP), roles)
        and (not isinstance(patterns, list) or not patterns or any(_matches(pattern, failed.message) for pattern in patterns))
    )


def _is_among(value: str, allowed: Any) -> bool:
    """An empty list allows everything."""
    return not isinstance(allowed, list) or not allowed or value in allowed


def _matches(pattern: Any, message: str) -> bool:
    try:
        return isinstance(pattern, str) and re.search(pattern, message) is not None
    except re.error:  # Go's syntax differs in rare corners
        return False


def tolerates_disruption(job_spec: Mapping[str, Any]) -> bool:
    """Whether a Job would start another pod in place of a disrupted one (spec.podFailurePolicy, spec.backoffLimit: 6 if not said)."""
    limit = integer(job_spec, "backoffLimit")
    has_retries = limit is None or limit > 0
    for rule in mappings(job_spec, "podFailurePolicy", "rules"):
        if any(text(one, "type") == "DisruptionTarget" for one in mappings(rule, "onPodConditions")):
            return {"Ignore": True, "FailJob": False}.get(text(rule, "action"), has_retries)
    return has_retries
