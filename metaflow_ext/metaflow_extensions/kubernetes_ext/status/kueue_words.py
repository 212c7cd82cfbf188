"""What Kueue's reasons and messages mean: which waiting can pass, which never will, and what an eviction was about.

The texts are those of Kueue 0.17, pkg/scheduler and pkg/controller/core; what is not known here can pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import Category

# Of a pod set that finds no flavor. Others of its flavors may do: only if all reasons are of these it is hopeless.
_NO_FLAVOR_NEVER = (
    "> maximum capacity (",
    "unavailable in ClusterQueue",
    "untolerated taint",
    "doesn't match node affinity",
    "no requested topology level",
    "topology level not specified",
)
_NO_FLAVOR_NOW = ("insufficient unused quota", "doesn't allow to fit", "allows to fit only", " not found")
_POD_SET = "couldn't assign flavors to pod set "
# Whole messages. Stopped and inactive queues are started again, those that don't exist were most likely misspelled.
_NEVER = (
    "doesn't exist",
    "doesn't match ClusterQueue selector",
    "resources validation failed",
    "didn't satisfy LimitRange constraints",
    "DynamicResourceAllocation feature does not support",
)


def can_never_pass(message: str) -> bool:
    """Of a QuotaReserved condition with status "False": whether waiting alone can't help."""
    pod_sets = message.split(_POD_SET)[1:] or [message]
    return any(words in message for words in _NEVER) or any(_is_hopeless(pod_set) for pod_set in pod_sets)


def _is_hopeless(pod_set: str) -> bool:
    return any(words in pod_set for words in _NO_FLAVOR_NEVER) and not any(words in pod_set for words in _NO_FLAVOR_NOW)


@dataclass(frozen=True)
class Eviction:
    """How a sentence about it begins."""

    start: str
    category: Category = Category.QUOTA


_EVICTIONS = {
    "Preempted": Eviction("Was preempted", Category.PREEMPTED),
    "PodsReadyTimeout": Eviction("Was taken back since not all its pods were ready in time"),
    "AdmissionCheck": Eviction("Was taken back by an admission check"),
    "ClusterQueueStopped": Eviction("Was stopped together with its ClusterQueue"),
    "LocalQueueStopped": Eviction("Was stopped together with its queue"),
    "NodeFailures": Eviction("Was taken back since a node failed", Category.NODE_LOST),
}


def eviction(reason: str) -> Eviction | None:
    """None for those that say no more than what is waited for. Old versions have longer reasons ("EvictedByPreemption")."""
    if "preempt" in reason.lower():
        reason = "Preempted"
    return _EVICTIONS.get(reason)


_DEACTIVATIONS = {
    "RequeuingLimitExceeded": (
        "not all its pods were ready in time, too often",
        "See why pods of it were not ready: python flow.py kubernetes events.",
    ),
    "AdmissionCheck": (
        "an admission check has rejected it",
        "Ask whoever runs the queue what the check wants.",
    ),
    "MaximumExecutionTimeExceeded": (
        "it ran longer than its maximum execution time",
        "Raise the label kueue.x-k8s.io/max-exec-time-seconds, or make it shorter.",
    ),
}


def deactivation(reason: str, *, is_target: bool = False) -> tuple[str, str] | None:
    """Why Kueue has deactivated it by itself, and what to do; None when a person has. The reason is that of the condition Evicted,
    or, with `is_target`, of DeactivationTarget."""
    cause = reason if is_target else reason.partition("DeactivatedDueTo")[2]
    return _DEACTIVATIONS.get(cause, (cause, "Ask whoever runs the queue.")) if cause else None
