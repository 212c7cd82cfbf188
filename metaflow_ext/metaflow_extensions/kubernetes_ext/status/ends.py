"""How a pod ended, what disrupted it, and whether its end was its own: the facts that diagnosis weighs.

Sources: PodStatus (phase, reason, containerStatuses, conditions of type DisruptionTarget).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from .model import KubernetesObject, PodRecord
from .reading import Condition, deletion_requested_at, integer, is_terminating, mapping, mappings, moment, text, true_condition

SIGKILL, SIGTERM = 137, 143


@dataclass(frozen=True, kw_only=True)
class End:
    """The end of a pod. `exit_code` is None where no container wrote one (evicted, cleared away with its node)."""

    exit_code: int | None = None
    reason: str = ""  # the container's: OOMKilled, Error, Completed, StartError
    message: str = ""
    container: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    is_init: bool = False


def end_of(pod: KubernetesObject) -> End | None:
    """None while the pod has not ended. A container that failed and is not started again is an end, though others still run."""
    phase = text(pod, "status", "phase")
    failed = _failed_container(pod)
    if failed and (phase in ("Failed", "Succeeded") or text(pod, "spec", "restartPolicy") in ("", "Never")):
        return failed
    if phase not in ("Failed", "Succeeded"):
        return None
    ends = [_end(entry) for entry in mappings(pod, "status", "containerStatuses") if _terminated(entry)]
    return ends[0] if ends else End()


def has_failed(pod: KubernetesObject) -> bool:
    end = end_of(pod)
    return end is not None and (text(pod, "status", "phase") == "Failed" or bool(end.exit_code))


def disruption(pod: KubernetesObject) -> Condition | None:
    """The condition DisruptionTarget, where it can be why the pod ended: one set after an end of its own explains nothing."""
    found = true_condition(pod, "DisruptionTarget")
    end = end_of(pod) if found else None
    if found and end and end.finished_at and found.since and found.since > end.finished_at + timedelta(seconds=1):
        return None
    return found


def is_own_end(record: PodRecord) -> bool:
    """Whether the pod ended by itself, not because somebody deleted it."""
    pod = record.object
    if end_of(pod) is None:
        return False
    if record.terminated_before_deletion or not (is_terminating(pod) or record.deleted):
        return True
    return record.first_seen_ended is None and ended_before_deletion(pod)


def ended_before_deletion(pod: KubernetesObject) -> bool:
    """By the times in the object alone, which are whole seconds: a tie is decided by the exit code."""
    end, requested = end_of(pod), deletion_requested_at(pod)
    if end is None:
        return False
    if requested is None or end.finished_at is None:
        return not is_terminating(pod)
    if end.finished_at != requested:
        return end.finished_at < requested
    return not is_killed(end)


def last_failure(pod: KubernetesObject) -> End | None:
    """The failure after which a container was started again (restartPolicy OnFailure): its Job counts it, and deletes the pod at the limit."""
    now = end_of(pod)
    if now is not None and now.exit_code and not is_killed(now):
        return now if restart_count(pod) else None
    entries = [mapping(entry, "lastState") for entry in mappings(pod, "status", "containerStatuses")]
    before = [_end({"state": state}) for state in entries]
    return next((end for end in before if end.exit_code or end.reason == "OOMKilled"), None)


def is_killed(end: End) -> bool:
    """How containers end that are told to stop: by SIGTERM, or by SIGKILL after the grace period."""
    return end.exit_code == SIGTERM or (end.exit_code == SIGKILL and end.reason != "OOMKilled")


def restart_count(pod: KubernetesObject) -> int:
    return sum(max(integer(entry, "restartCount") or 0, 0) for entry in mappings(pod, "status", "containerStatuses"))


def waiting_state(pod: KubernetesObject) -> tuple[str, str, str]:
    """(reason, message, image) of the first container that waits with a reason, init containers first; empty when none does."""
    for key in ("initContainerStatuses", "containerStatuses"):
        for entry in mappings(pod, "status", key):
            if reason := text(entry, "state", "waiting", "reason"):
                return reason, text(entry, "state", "waiting", "message"), text(entry, "image")
    return "", "", ""


def started_at(pod: KubernetesObject) -> datetime | None:
    """When the first container began to run."""
    entries = mappings(pod, "status", "containerStatuses")
    starts = [moment(entry, "state", state, "startedAt") for entry in entries for state in ("running", "terminated")]
    return min((start for start in starts if start), default=None)


def _failed_container(pod: KubernetesObject) -> End | None:
    """The container to blame: out of memory first, then the order of the status."""
    ends = [_end(entry) for entry in mappings(pod, "status", "containerStatuses") if _terminated(entry)]
    inits = [_end(entry, is_init=True) for entry in mappings(pod, "status", "initContainerStatuses") if _terminated(entry)]
    failed = [end for end in inits + ends if end.exit_code or end.reason == "OOMKilled"]
    return next((end for end in failed if end.reason == "OOMKilled"), failed[0] if failed else None)


def _terminated(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(entry, "state", "terminated")


def _end(entry: Mapping[str, Any], is_init: bool = False) -> End:
    state = _terminated(entry)
    return End(
        exit_code=integer(state, "exitCode"),
        reason=text(state, "reason"),
        message=text(state, "message"),
        container=text(entry, "name"),
        started_at=moment(state, "startedAt"),
        finished_at=moment(state, "finishedAt"),
        is_init=is_init,
    )
