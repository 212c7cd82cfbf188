"""What the cluster refused to create for a workload: its Jobs, or their pods. Only Events say so, the status stays as it was.

Source: JobSet's Event JobCreationFailed (on the JobSet), the Job controller's FailedCreate (on the Job).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from .describe import sentence
from .job_evidence import event_at, event_count, is_about
from .model import Category, KubernetesObject, Observation, Waiting
from .reading import created_at, moment, name, text

_JOB_REFUSED = re.compile(r'job "([^"]*)" creation failed with error: (.*)', re.DOTALL)
# The name of a pod ends differently each time: it would make the same refusal look like a new one.
_POD_REFUSED = re.compile(r'Error creating: (?:pods "[^"]*" is forbidden: )?(.*)', re.DOTALL)
# Of pods, which others' objects decide on (accounts, quotas, limits), only what the pod itself has to be otherwise is final.
_FINAL_OF_PODS = ("violates PodSecurity", "must specify", "usage per Container", "usage per Pod", "is invalid:")
# A refusal seen once may be a race; the JobSet controller tries again within seconds.
_CERTAIN_AFTER, _CERTAIN_COUNT = timedelta(seconds=5), 3
_PASSING = ("exceeded quota", "failed calling webhook", "timeout", "timed out", "connection refused", "being terminated")


def job_refusal(observation: Observation) -> Waiting | None:
    """A Job that the JobSet controller can't create. "already exists" is a race of its own, seen in healthy runs."""
    there = {name(job) for job in observation.jobs}
    for event in newest(observation.events, "JobCreationFailed"):
        if not is_about(event, observation.workload or {}):
            continue
        message = text(event, "message")
        found = _JOB_REFUSED.match(message)
        job, error = (found.group(1), found.group(2)) if found else ("", message)
        if "already exists" in error or job in there:
            continue
        return _refused(f"Job {job}" if job else "A Job", error, event, observation.at)
    return None


def pod_refusal(observation: Observation, jobs: Iterable[KubernetesObject], missing: int) -> Waiting | None:
    """Pods that a Job can't create, while `missing` ranks have none."""
    jobs = list(jobs)
    for event in newest(observation.events, "FailedCreate") if missing else ():
        job = next((job for job in jobs if is_about(event, job)), None)
        if job is None:
            continue
        found = _POD_REFUSED.match(text(event, "message"))
        error = found.group(1) if found else text(event, "message")
        waiting = _refused(f"A pod of Job {name(job)}", error, event, observation.at)
        is_final = any(words in error for words in _FINAL_OF_PODS)
        return replace(waiting, is_hopeless=waiting.is_hopeless and is_final)
    return None


def _refused(what: str, error: str, event: KubernetesObject, at: datetime) -> Waiting:
    """Hopeless when the text names a fault in the object, and it was said often or long enough."""
    since = moment(event, "firstTimestamp") or event_at(event)
    can_pass = any(words in error for words in _PASSING)
    is_certain = event_count(event) >= _CERTAIN_COUNT or (since is not None and at - since > _CERTAIN_AFTER)
    return Waiting(
        category=Category.QUOTA if "exceeded quota" in error else Category.REJECTED,
        summary=sentence(f"{what} can't be created: {error}"),
        detail=_what_to_do(error, text(event, "involvedObject", "namespace"), can_pass),
        since=since,
        is_hopeless=not can_pass and is_certain,
    )


def _what_to_do(error: str, namespace: str, can_pass: bool) -> str:
    if quota := re.search(r"exceeded quota: ([^\s,]+)", error):
        there = f" -n {namespace}" if namespace else ""
        return f"`kubectl describe quota {quota.group(1)}{there}` shows what is used: end some of that, ask for less, or have it raised."
    if "violates PodSecurity" in error:
        return "Give the step a security_context that the namespace takes (docs/permissions.md has one), and run it again."
    return "The cluster tries again by itself." if can_pass else "Correct what the message names, and run it again."


def newest(events: Iterable[KubernetesObject], reason: str) -> list[KubernetesObject]:
    """The Events with this reason, the newest first."""
    dated = [(event_at(event), event) for event in events if text(event, "reason") == reason]
    return [event for at, event in sorted(((at, event) for at, event in dated if at), key=lambda pair: pair[0], reverse=True)]


def is_untouched(observation: Observation, after: timedelta = timedelta(seconds=30)) -> bool:
    """No controller has written a status for so long that none may be there."""
    created = created_at(observation.workload)
    return created is not None and not (observation.workload or {}).get("status") and observation.at - created > after
