"""Why a suspended workload waits: Kueue's Workload says it in words, the suspended object itself does not.

Source: kueue.x-k8s.io Workload status.conditions (QuotaReserved, Admitted, Evicted) and spec.active.
"""

from __future__ import annotations

from datetime import datetime

from ..spec import labels
from .describe import sentence
from .model import Category, KubernetesObject, Observation, Waiting
from .reading import Condition, conditions, created_at, dig, false_condition, label, mappings, text

# Texts of QuotaReserved=False that time alone never heals. Its reason Inadmissible says less: a queue that is stopped has it, too.
_NEVER = ("maximum capacity", "doesn't exist")


def queue_waiting(observation: Observation) -> Waiting:
    """Of a suspended workload."""
    workload = observation.workload
    queue = label(workload or {}, labels.KUEUE_QUEUE)
    if observation.admission is not None:
        return _by_admission(observation.admission, queue)
    if queue:
        return Waiting(
            category=Category.QUOTA,
            summary=f"Waits in queue {queue}.",
            detail="Kueue has not said anything about it yet: is Kueue running, and does it manage this kind?",
            since=created_at(workload),
        )
    return Waiting(
        category=Category.UNKNOWN,
        summary="Is suspended (spec.suspend is true), and no queue is named that could start it.",
        detail="Set spec.suspend to false, or find out who suspended it.",
        since=_suspended_since(workload),
    )


def _by_admission(admission: KubernetesObject, queue: str) -> Waiting:
    queue = text(admission, "spec", "queueName") or queue
    found, unreserved = conditions(admission), false_condition(admission, "QuotaReserved")
    evicted = found.get("Evicted")
    if dig(admission, "spec", "active") is False:
        return _deactivated(queue, evicted)
    if unreserved:
        return _without_quota(queue, unreserved, evicted)
    if "Admitted" in found:
        return Waiting(
            category=Category.QUOTA, summary=f"Admitted by queue {queue}, is being started.", since=found["Admitted"].since
        )
    if reserved := found.get("QuotaReserved"):
        return _unchecked(admission, queue, reserved)
    return Waiting(category=Category.QUOTA, summary=f"Waits in queue {queue}.", since=created_at(admission))


def _deactivated(queue: str, evicted: Condition | None) -> Waiting:
    return Waiting(
        category=Category.QUOTA,
        summary=f"Was deactivated in queue {queue}, and stays so until it is activated again.",
        detail=evicted.message if evicted else "",
        since=evicted.since if evicted else None,
    )


def _without_quota(queue: str, unreserved: Condition, evicted: Condition | None) -> Waiting:
    never = any(words in unreserved.message for words in _NEVER)
    was_preempted = evicted is not None and "preempt" in evicted.reason.lower()
    start = "Was preempted, and waits" if was_preempted else "Can never start" if never else "Waits"
    return Waiting(
        category=Category.PREEMPTED if was_preempted else Category.QUOTA,
        summary=sentence(f"{start} in queue {queue}" + (f": {unreserved.message}" if unreserved.message else "")),
        detail=(evicted.message if was_preempted and evicted else ""),
        since=unreserved.since,
        is_hopeless=never,
    )


def _unchecked(admission: KubernetesObject, queue: str, reserved: Condition) -> Waiting:
    """Quota is reserved, but admission checks (a provisioning request, another cluster) are not ready."""
    open_checks = [check for check in mappings(admission, "status", "admissionChecks") if check.get("state") != "Ready"]
    checks = ", ".join(text(check, "name") for check in open_checks) or "its admission checks"
    return Waiting(
        category=Category.QUOTA,
        summary=f"Has its quota in queue {queue}, and waits for {checks}.",
        detail=" ".join(text(check, "message") for check in open_checks),
        since=reserved.since,
    )


def _suspended_since(workload: KubernetesObject | None) -> datetime | None:
    found = conditions(workload).get("Suspended")
    return found.since if found else created_at(workload)
