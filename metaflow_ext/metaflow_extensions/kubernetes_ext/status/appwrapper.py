"""The reducer for AppWrappers (workload.codeflare.dev/v1beta2): its own phase, and the verdict of the JobSet, Job or pods in it.

The AppWrapper alone decides about the end, since it runs what has failed again up to its retry limit, and deletes it each time:
who failed, and why, is only in what was seen of the wrapped object and its pods. Success may come earlier, from the pods.

Source: AppWrapper spec.suspend, status.phase (Suspended, Resuming, Running, Resetting, Suspending, Succeeded, Failed, Terminating)
and status.resettingCount.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ..spec import labels
from . import stalled
from .bare_pods import pods_status
from .job import job_status
from .jobset import jobset_status
from .layout import Layout, bare_layout, job_layout, jobset_layout
from .model import Category, Failure, KubernetesObject, Observation, Phase, Waiting, WorkloadStatus
from .ownership import owns_job, owns_pod
from .queueing import queue_waiting
from .reading import conditions, dig, integer, is_terminating, mapping, mappings, name, owner_uids, text, uid
from .verdict import final, gone

_Reader = tuple[Callable[[Observation, "WorkloadStatus | None"], WorkloadStatus], Callable[[KubernetesObject], Layout]]
_READERS: Mapping[str, _Reader] = {"JobSet": (jobset_status, jobset_layout), "Job": (job_status, job_layout)}


def appwrapper_status(observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
    """What is observed of an AppWrapper, judged. `Observation.wrapped` is what it made, as last seen."""
    wrapper = observation.workload
    if wrapper is None:
        if not observation.was_seen:
            return previous or WorkloadStatus(phase=Phase.PENDING, size=0)
        before = previous or WorkloadStatus(phase=Phase.PENDING, size=0)
        return final(gone(before, "AppWrapper", observation), previous)
    inner = _inner(observation, wrapper)
    return final(_judge(observation, wrapper, inner, previous), previous)


def _judge(
    observation: Observation, wrapper: KubernetesObject, inner: WorkloadStatus, previous: WorkloadStatus | None
) -> WorkloadStatus:
    phase = text(wrapper, "status", "phase")
    restarts = _restarts(wrapper)
    status = replace(
        inner, restarts=max(inner.restarts, restarts), waiting=None, failure=None, stalled=stalled.of_workload(wrapper)
    )
    if phase == "Failed":
        return replace(status, phase=Phase.FAILED, reason="Failed", failure=inner.failure or _unexplained(observation, wrapper))
    if phase == "Succeeded" or inner.phase is Phase.SUCCEEDED:
        return replace(status, phase=Phase.SUCCEEDED, reason=phase)
    if is_terminating(wrapper):
        return replace(status, phase=previous.phase if previous else Phase.PENDING, waiting=_being_deleted())
    if dig(wrapper, "spec", "suspend") is True:
        return _without_ranks(replace(status, phase=Phase.QUEUED, waiting=queue_waiting(observation)))
    if phase in ("Resetting", "Suspending") or inner.is_terminal or observation.wrapped_is_gone:
        return replace(
            status, phase=Phase.STARTING, waiting=_running_again(inner.failure, _what_comes(wrapper, phase, restarts))
        )
    if inner.phase is Phase.PENDING and phase in ("Resuming", "Running"):
        return replace(status, phase=Phase.STARTING)
    return replace(status, phase=inner.phase, waiting=inner.waiting)


def _inner(observation: Observation, wrapper: KubernetesObject) -> WorkloadStatus:
    """The verdict on the wrapped object, or its size alone while there is none; on the pods where it wraps those."""
    wrapped = observation.wrapped
    if wrapped is not None:
        reduce, _ = _READERS[text(wrapped, "kind")]
        return reduce(_of_last_try(observation, wrapped), None)
    templates = [mapping(component, "template") for component in mappings(wrapper, "spec", "components")]
    for template in templates:
        if text(template, "kind") in _READERS:
            _, layout = _READERS[text(template, "kind")]
            return WorkloadStatus(phase=Phase.PENDING, size=layout(template).size)
    return pods_status(observation, bare_layout(name(wrapper), templates), _restarts(wrapper))


def _restarts(wrapper: KubernetesObject) -> int:
    return max(integer(wrapper, "status", "resettingCount") or 0, 0)


def _of_last_try(observation: Observation, wrapped: KubernetesObject) -> Observation:
    """The wrapped object with its own Jobs and pods: those of the tries before have the same names."""
    return replace(
        observation,
        workload=wrapped,
        was_seen=True,
        admission=None,
        wrapped=None,
        jobs=tuple(job for job in observation.jobs if owns_job(wrapped, job)),
        pods=tuple(record for record in observation.pods if owns_pod(wrapped, record.object)),
    )


def is_wrapped(obj: KubernetesObject, wrapper: KubernetesObject | None) -> bool:
    """Whether an AppWrapper made this object, and we can read it."""
    is_wrapper = text(wrapper, "kind") == "AppWrapper" and bool(uid(wrapper))
    return is_wrapper and text(obj, "kind") in _READERS and uid(wrapper) in owner_uids(obj)


def _without_ranks(status: WorkloadStatus) -> WorkloadStatus:
    """A suspended AppWrapper deletes what it made: the pods that were are nobody's any more."""
    return replace(status, ranks=(), counts={})


def _what_comes(wrapper: KubernetesObject, phase: str, restarts: int) -> str:
    """It takes its time (a minute, if not told otherwise), so the failure is told before its decision."""
    if phase in ("Resetting", "Suspending"):
        return "starts it again"
    limit = text(wrapper, "metadata", "annotations", f"{labels.APPWRAPPER}retryLimit")
    return "has no try left" if limit.isdigit() and restarts >= int(limit) else "decides whether to start it again"


def _running_again(failure: Failure | None, what: str) -> Waiting:
    if failure is None:
        return Waiting(category=Category.UNKNOWN, summary="The AppWrapper starts it again.")
    return Waiting(category=Category.UNKNOWN, summary=f"The AppWrapper {what}: {failure.summary}")


def _being_deleted() -> Waiting:
    return Waiting(category=Category.GONE, summary="The AppWrapper is being deleted.")


def _unexplained(observation: Observation, wrapper: KubernetesObject) -> Failure:
    unhealthy = conditions(wrapper).get("Unhealthy")
    message = f" ({unhealthy.message or unhealthy.reason})" if unhealthy else ""
    return Failure(
        category=Category.UNKNOWN,
        summary=f"The AppWrapper failed, and nothing is left to say why{message}.",
        resolution="Set its annotation deletionOnFailureGracePeriodDuration, so that failed pods stay for a while.",
        reason=unhealthy.reason if unhealthy else "",
        at=unhealthy.since if unhealthy else observation.at,
    )
