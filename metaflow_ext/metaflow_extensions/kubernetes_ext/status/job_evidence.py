"""What Jobs and Events say of a failure when its pod is gone: conditions FailureTarget and Failed, and podFailurePolicy messages.

Only for what the pods themselves no longer tell: conditions have whole seconds, and the first failed Job can be a victim.
Source: kube-controller-manager, pkg/controller/job; the messages are quoted in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from .model import KubernetesObject, Observation
from .pods import attempt_of
from .reading import Condition, conditions, created_at, integer, mapping, moment, name, owner_uids, text, uid

_FAR = datetime(2999, 1, 1, tzinfo=timezone.utc)
_EXIT = re.compile(r"Container (\S+) for pod (?:[^\s/]+/)?(\S+) failed with exit code (-?\d{1,9}) matching Fail")
_CONDITION = re.compile(r"Pod (?:[^\s/]+/)?(\S+) has condition (\w+) matching Fail")


@dataclass(frozen=True, kw_only=True)
class PodFailure:
    """A pod named by a podFailurePolicy: with the exit code of its container, or with the condition it had."""

    pod: str
    exit_code: int | None = None
    container: str = ""
    condition: str = ""
    at: datetime | None = None


def pod_failure(message: str, at: datetime | None = None) -> PodFailure | None:
    """The pod that a podFailurePolicy message names."""
    if found := _EXIT.search(message):
        return PodFailure(pod=found.group(2), exit_code=int(found.group(3)), container=found.group(1), at=at)
    if found := _CONDITION.search(message):
        return PodFailure(pod=found.group(1), condition=found.group(2), at=at)
    return None


def failure_condition(job: KubernetesObject) -> Condition | None:
    """FailureTarget, which comes first and stays, else Failed."""
    found = conditions(job)
    return found.get("FailureTarget") or found.get("Failed")


def failed_jobs(jobs: Iterable[KubernetesObject]) -> list[tuple[KubernetesObject, Condition]]:
    """The Jobs that can't succeed any more, the first one first."""
    failed = [(job, found) for job in jobs if (found := failure_condition(job))]
    return sorted(failed, key=lambda pair: pair[1].since or _FAR)


def jobs_of(observation: Observation, attempt: int) -> list[KubernetesObject]:
    """The Jobs of this JobSet and attempt, or the Job that is itself the workload: others may be left of an earlier JobSet."""
    owner = uid(observation.workload)
    return [
        job
        for job in observation.jobs
        if attempt_of(job) == attempt and (not owner or not owner_uids(job) or owner in owner_uids(job) | {uid(job)})
    ]


def named_pod_failures(jobs: Sequence[KubernetesObject], observation: Observation, restarts: int) -> list[PodFailure]:
    """Pods named by podFailurePolicies, the first one first; Events outlive the Job that they are about."""
    known = {uid(job) for job in jobs} - {""}
    found = [pod_failure(condition.message, condition.since) for _, condition in failed_jobs(jobs)]
    for event in observation.events:
        if text(event, "reason") != "PodFailurePolicy":
            continue
        is_current = text(event, "involvedObject", "uid") in known
        if is_current or (restarts == 0 and _may_be_about_a_job_of(observation.workload, event)):
            found.append(pod_failure(text(event, "message"), event_at(event)))
    return sorted((failure for failure in found if failure), key=lambda failure: failure.at or _FAR)


def _may_be_about_a_job_of(workload: KubernetesObject | None, event: KubernetesObject) -> bool:
    """A Job that is gone is known by its name only, which an earlier workload of the same name may have had too."""
    created, at = created_at(workload), event_at(event)
    is_later = created is None or at is None or at >= created
    return is_later and f"{text(event, 'involvedObject', 'name')}-".startswith(f"{name(workload)}-")


def event_at(event: KubernetesObject) -> datetime | None:
    """When an Event was seen last: the scheduler's have only eventTime."""
    return (
        moment(event, "lastTimestamp")
        or moment(event, "series", "lastObservedTime")
        or moment(event, "eventTime")
        or moment(event, "firstTimestamp")
        or created_at(event)
    )


def event_count(event: KubernetesObject) -> int:
    return max(integer(event, "count") or 1, integer(event, "series", "count") or 1)


def is_about(event: KubernetesObject, obj: KubernetesObject) -> bool:
    """By uid where both have one, else by name and kind."""
    involved = mapping(event, "involvedObject")
    if text(involved, "uid") and uid(obj):
        return text(involved, "uid") == uid(obj)
    return bool(name(obj)) and text(involved, "name") == name(obj) and text(involved, "kind") in ("", text(obj, "kind"))


def first_failed_index(job: KubernetesObject) -> int | None:
    """Of status.failedIndexes, "2,4-6": the one rank that a Job with backoffLimitPerIndex names."""
    found = re.match(r"\d{1,9}", text(job, "status", "failedIndexes"))
    return int(found.group()) if found else None


def job_named_in(message: str) -> str:
    """Of "... (first failed job: g-worker-2)"."""
    found = re.search(r"first failed job: ([^\s)]+)", message)
    return found.group(1) if found else ""
