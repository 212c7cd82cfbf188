"""Why a suspended workload waits: Kueue's Workload says it in words, the suspended object itself does not.

Source: kueue.x-k8s.io Workload status.conditions (QuotaReserved, Admitted, Evicted), status.admissionChecks, status.requeueState
and spec.active.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from ..spec import labels
from .describe import sentence
from .kueue_words import can_never_pass, deactivation, eviction
from .model import Category, KubernetesObject, Observation, Waiting
from .reading import Condition, conditions, created_at, dig, false_condition, integer, label, mappings, moment, name, text, uid


def queue_waiting(observation: Observation) -> Waiting:
    """Of a suspended workload."""
    workload = observation.workload
    queue = label(workload or {}, labels.KUEUE_QUEUE)
    if observation.admission is not None:
        return _by_admission(observation, observation.admission, queue)
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


def _by_admission(observation: Observation, admission: KubernetesObject, queue: str) -> Waiting:
    queue = text(admission, "spec", "queueName") or queue
    found, unreserved = conditions(admission), false_condition(admission, "QuotaReserved")
    evicted = found.get("Evicted")
    if dig(admission, "spec", "active") is False:
        return _deactivated(observation, admission, queue, evicted, found.get("DeactivationTarget"))
    if rejected := _checks(admission, "Rejected"):
        return _rejected(queue, rejected)
    if evicted and eviction(evicted.reason) and not unreserved:  # its quota is taken from it in a moment
        unreserved = evicted
    if unreserved:
        return _without_quota(observation, admission, queue, unreserved, evicted)
    if "Admitted" in found:
        return Waiting(
            category=Category.QUOTA, summary=f"Admitted by queue {queue}, is being started.", since=found["Admitted"].since
        )
    if reserved := found.get("QuotaReserved"):
        return _unchecked(admission, queue, reserved)
    return Waiting(
        category=Category.QUOTA, summary=f"Waits in queue {queue}{_position(observation)}.", since=created_at(admission)
    )


def _deactivated(
    observation: Observation, admission: KubernetesObject, queue: str, evicted: Condition | None, target: Condition | None
) -> Waiting:
    """By a person, who may activate it again, or by Kueue, which never does."""
    last = target or evicted  # the first comes before the second, and stays
    by_kueue = deactivation(last.reason, is_target=last is target) if last else None
    if last is None or by_kueue is None:
        return Waiting(
            category=Category.QUOTA,
            summary=f"Was deactivated in queue {queue}, and stays so until it is activated again.",
            detail=f"Its Workload {name(admission)} has spec.active false.",
            since=evicted.since if evicted else None,
        )
    why, advice = by_kueue
    said = [_said(check) for check in _checks(admission, "Rejected")] or _rejections(observation, admission)
    checks = "".join(f" ({words})" for words in said)
    return Waiting(
        category=Category.DEADLINE if "MaximumExecutionTime" in last.reason else Category.QUOTA,
        summary=f"Was given up by queue {queue}: {why}{checks}.",
        detail=f"{sentence(last.message)} {advice}" if last.message else advice,
        since=last.since,
        is_hopeless=True,
    )


def _rejections(observation: Observation, admission: KubernetesObject) -> list[str]:
    """The words of the checks from Kueue's Events, which stay: "prov: no such nodes"."""
    messages = [
        text(event, "message")
        for event in observation.events
        if text(event, "reason") == "AdmissionCheckRejected" and text(event, "involvedObject", "uid") == uid(admission)
    ]
    found = [re.search(r"AdmissionCheck for (\S+) was Rejected: (.+)", message, re.DOTALL) for message in messages]
    return list(dict.fromkeys(f"{one[1]}: {one[2].strip()}" for one in found if one))


def _rejected(queue: str, checks: Sequence[KubernetesObject]) -> Waiting:
    return Waiting(
        category=Category.QUOTA,
        summary=sentence(f"Is rejected in queue {queue} by admission check {', '.join(map(_said, checks))}"),
        detail="Ask whoever runs the queue what the check wants.",
        is_hopeless=True,
    )


def _without_quota(
    observation: Observation, admission: KubernetesObject, queue: str, unreserved: Condition, evicted: Condition | None
) -> Waiting:
    never = can_never_pass(unreserved.message)
    why = eviction(evicted.reason) if evicted else None
    start = f"{why.start}, and waits" if why else "Can never start" if never else "Waits"
    words = _why_again(admission) or _news(unreserved, evicted)
    until = _requeued_at(observation, admission)
    return Waiting(
        category=why.category if why else Category.QUOTA,
        summary=sentence(f"{start} in queue {queue}{until or _position(observation)}" + (f": {words}" if words else "")),
        detail=evicted.message if why and evicted else "",
        since=unreserved.since,
        is_hopeless=never,
    )


def _news(unreserved: Condition, evicted: Condition | None) -> str:
    """Kueue repeats the words of an eviction until it has tried again."""
    return "" if evicted and evicted.message == unreserved.message and eviction(evicted.reason) else unreserved.message


def _why_again(admission: KubernetesObject) -> str:
    return ", ".join(f"admission check {_said(check)} is to be tried again" for check in _checks(admission, "Retry"))


def _requeued_at(observation: Observation, admission: KubernetesObject) -> str:
    """ " until 12:05:00 UTC (try 3)" while Kueue keeps it back."""
    at, count = moment(admission, "status", "requeueState", "requeueAt"), integer(admission, "status", "requeueState", "count")
    if at is None or at <= observation.at:
        return ""
    return f" until {at:%H:%M:%S} UTC" + (f" (try {count + 1})" if count else "")


def _position(observation: Observation) -> str:
    ahead = observation.queued_ahead
    return "" if ahead is None else " as the next" if ahead == 0 else f" behind {ahead} other{'s' if ahead > 1 else ''}"


def _unchecked(admission: KubernetesObject, queue: str, reserved: Condition) -> Waiting:
    """Quota is reserved, but admission checks (a provisioning request, another cluster) are not ready."""
    open_checks = [check for check in mappings(admission, "status", "admissionChecks") if check.get("state") != "Ready"]
    checks = ", ".join(map(_said, open_checks))
    return Waiting(
        category=Category.QUOTA,
        summary=sentence(
            f"Has its quota in queue {queue}, and waits for "
            + (f"admission check {checks}" if checks else "its admission checks")
        ),
        detail=_why_again(admission),
        since=reserved.since,
    )


def _checks(admission: KubernetesObject, state: str) -> list[KubernetesObject]:
    return [check for check in mappings(admission, "status", "admissionChecks") if check.get("state") == state]


def _said(check: KubernetesObject) -> str:
    """ "prov: Waiting for the provisioning of nodes"."""
    return text(check, "name") + (f": {text(check, 'message')}" if text(check, "message") else "")


def _suspended_since(workload: KubernetesObject | None) -> datetime | None:
    found = conditions(workload).get("Suspended")
    return found.since if found else created_at(workload)
