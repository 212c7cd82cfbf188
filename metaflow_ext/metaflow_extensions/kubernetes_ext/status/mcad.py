"""The reducer for AppWrappers of MCAD (v1beta1): where it stands in MCAD's queue, and the verdict on its pods.

MCAD never says that all went well, as it doesn't look at how pods ended; and takes all pods back when fewer than
`minAvailable` run, after a while, whatever the reason. So the pods decide, unless its own limit of failures lets MCAD try again.

Source: AppWrapper status.state, .queuejobstate, .numberOfRequeueings and .conditions.
"""

from __future__ import annotations

from dataclasses import replace

from ..spec import labels
from . import stalled
from .bare_pods import pods_status
from .describe import sentence
from .layout import bare_layout
from .model import Category, Failure, KubernetesObject, Observation, Phase, Waiting, WorkloadStatus
from .reading import conditions, created_at, integer, is_terminating, mapping, mappings, moment, name, text
from .verdict import final, gone

# MCAD's own end of it, which only ever is a failure: "Deleted" once it has been taken back too often.
_GIVEN_UP = ("Failed", "Deleted")
_QUEUED = ("Init", "Queueing", "HeadOfLine", "Backoff", "Preempted")
_STATES = {
    "HeadOfLine": "is the next",
    "Backoff": "is kept back for a while",
    "Preempted": "was preempted",
}
_ORDINARY = ("AwaitingHeadOfLine", "FrontOfQueue.")  # reasons that say no more than the state


def mcad_status(observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
    """What is observed of an AppWrapper of MCAD, judged."""
    wrapper = observation.workload
    if wrapper is None:
        before = previous or WorkloadStatus(phase=Phase.PENDING, size=0)
        return final(gone(before, "AppWrapper", observation), previous) if observation.was_seen else before
    items = mappings(wrapper, "spec", "resources", "GenericItems")
    layout = bare_layout(name(wrapper), (mapping(item, "generictemplate") for item in items))
    restarts = max(integer(wrapper, "status", "numberOfRequeueings") or 0, 0)
    pods = pods_status(observation, layout, restarts)
    return final(_judge(observation, wrapper, pods, previous), previous)


def _judge(
    observation: Observation, wrapper: KubernetesObject, pods: WorkloadStatus, previous: WorkloadStatus | None
) -> WorkloadStatus:
    state = text(wrapper, "status", "state")
    status = replace(pods, waiting=None, failure=None, stalled=stalled.of_workload(wrapper))
    if pods.phase is Phase.SUCCEEDED:
        return replace(status, reason=state)
    if is_terminating(wrapper):
        waiting = Waiting(category=Category.GONE, summary="The AppWrapper is being deleted.")
        return replace(status, phase=previous.phase if previous else Phase.PENDING, waiting=waiting)
    if state in _GIVEN_UP:
        return replace(status, phase=Phase.FAILED, reason=state, failure=pods.failure or _unexplained(observation, wrapper))
    if text(wrapper, "status", "queuejobstate") in _QUEUED or state in ("", "Pending"):
        return replace(status, phase=Phase.QUEUED, ranks=(), counts={}, waiting=_waiting(wrapper))
    if pods.phase is Phase.FAILED:
        return _after_failure(wrapper, status, pods.failure)
    return replace(status, phase=Phase.STARTING if pods.phase is Phase.PENDING else pods.phase, waiting=pods.waiting)


def _after_failure(wrapper: KubernetesObject, status: WorkloadStatus, failure: Failure | None) -> WorkloadStatus:
    limit = text(wrapper, "metadata", "annotations", f"{labels.APPWRAPPER}retryLimit")
    if not limit.isdigit() or status.restarts >= int(limit):
        return replace(status, phase=Phase.FAILED, reason="Failed", failure=failure)
    what = failure.summary if failure else "a rank has failed."
    waiting = Waiting(category=Category.UNKNOWN, summary=f"MCAD starts it again after a while: {what}")
    return replace(status, phase=Phase.STARTING, waiting=waiting)


def _waiting(wrapper: KubernetesObject) -> Waiting:
    """By the last thing that MCAD has said: it adds a condition for each step, and takes none away."""
    found = text(wrapper, "status", "queuejobstate")
    said = [one for one in mappings(wrapper, "status", "conditions") if text(one, "type") == found]
    last = said[-1] if said else {}
    position = _STATES.get(found, "waits")
    words = text(last, "message") or ("" if text(last, "reason") in _ORDINARY else text(last, "reason"))
    return Waiting(
        category=Category.PREEMPTED if found == "Preempted" else Category.QUOTA,
        summary=sentence(f"In the queue of MCAD it {position}" + (f": {words}" if words else "")),
        detail="" if text(wrapper, "status", "state") else "MCAD has not said anything about it yet: is it running?",
        since=moment(last, "lastTransitionMicroTime") or created_at(wrapper),
    )


def _unexplained(observation: Observation, wrapper: KubernetesObject) -> Failure:
    candidate = conditions(wrapper).get("PreemptCandidate")
    words = (candidate.message or candidate.reason) if candidate else ""
    often = integer(wrapper, "status", "numberOfRequeueings") or 0
    tries = f" after {often} further tr{'y' if often == 1 else 'ies'}" if often else ""
    return Failure(
        category=Category.UNSCHEDULABLE if candidate else Category.UNKNOWN,
        summary=f"MCAD gave the AppWrapper up{tries}" + (f": {sentence(words)}" if words else "."),
        resolution="See what its pods waited for (python flow.py kubernetes events); ask for less, or run it again later.",
        reason=candidate.reason if candidate else text(wrapper, "status", "state"),
        at=observation.at,
    )
