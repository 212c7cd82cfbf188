"""Pods into ranks: which pod speaks for a rank, and what it says. Keeps what the watch showed of pods that are gone.

Pods of one rank are told apart by the JobSet's restart-attempt label, then by uid; the newest counts, and one that is being
deleted never hides one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone

from ..spec import labels
from .ends import disruption, end_of, ended_before_deletion, has_failed, is_own_end, restart_count, started_at, waiting_state
from .layout import Layout, Place
from .model import KubernetesObject, PodRecord, RankStatus
from .reading import conditions, created_at, integer, is_terminating, label, name, text, uid

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# No gang is larger; a spec that says so is nonsense, and only the ranks that have pods are then told.
_MOST_RANKS = 100_000
DELETED = "Deleted"


def remember(records: Mapping[str, PodRecord], event_type: str, pod: KubernetesObject, at: datetime) -> dict[str, PodRecord]:
    """The records, by uid, after a watch event ADDED, MODIFIED or DELETED (a listed pod is ADDED). Other types change nothing."""
    key = uid(pod) or name(pod)
    if not key or event_type not in ("ADDED", "MODIFIED", "DELETED"):
        return dict(records)
    known = records.get(key)
    return {**records, key: _record(known, event_type == "DELETED", pod, at)}


def _record(known: PodRecord | None, deleted: bool, pod: KubernetesObject, at: datetime) -> PodRecord:
    known = known or PodRecord(object=pod)
    ended = end_of(pod) is not None
    deleting = deleted or is_terminating(pod)
    return PodRecord(
        object=pod,
        deleted=deleted or known.deleted,
        seen_at=at,
        first_seen_ended=known.first_seen_ended or (at if ended else None),
        first_seen_deleting=known.first_seen_deleting or (at if deleting else None),
        terminated_before_deletion=known.terminated_before_deletion or (ended and _end_came_first(known, deleting, pod)),
    )


def _end_came_first(known: PodRecord, deleting: bool, pod: KubernetesObject) -> bool:
    if known.first_seen_ended or known.first_seen_deleting:
        return False  # decided then: the deletion was seen first
    return not deleting or ended_before_deletion(pod)


def attempt_of(obj: KubernetesObject) -> int:
    """The JobSet restart that a pod or Job belongs to."""
    return max(integer(label(obj, labels.JOBSET_RESTART_ATTEMPT)) or 0, 0)


def current_records(
    records: Iterable[PodRecord], layout: Layout, attempt: int, resumed_at: datetime | None = None
) -> dict[int, PodRecord]:
    """The pod that speaks for each rank in this attempt, by rank; ranks without one are left out.

    Pods that a suspension took away, before the workload was resumed, say nothing any more.
    """
    chosen: dict[int, tuple[tuple[bool, datetime, bool, int], PodRecord]] = {}
    for order, record in enumerate(records):
        place = layout.place(record.object)
        if place is None or attempt_of(record.object) != attempt or _is_of_earlier_start(record, resumed_at):
            continue
        key = _newness(record, order)
        if place.rank not in chosen or key > chosen[place.rank][0]:
            chosen[place.rank] = (key, record)
    return {rank: record for rank, (_, record) in chosen.items()}


def _is_of_earlier_start(record: PodRecord, resumed_at: datetime | None) -> bool:
    created = created_at(record.object)
    going = record.deleted or is_terminating(record.object)
    return going and created is not None and resumed_at is not None and created < resumed_at


def _newness(record: PodRecord, order: int) -> tuple[bool, datetime, bool, int]:
    going = record.deleted or is_terminating(record.object)
    is_live = not going and end_of(record.object) is None
    return is_live, created_at(record.object) or _EPOCH, not going, order


def rank_statuses(chosen: Mapping[int, PodRecord], layout: Layout) -> tuple[RankStatus, ...]:
    """One for every rank, by rank: those without a pod yet are Pending without a pod."""
    places = list(layout.places()) if layout.size <= _MOST_RANKS else []
    known = {place.rank: place for record in chosen.values() if (place := layout.place(record.object))}
    everyone = {place.rank: place for place in places} | known
    return tuple(rank_status(everyone[rank], chosen.get(rank)) for rank in sorted(everyone))


def rank_status(place: Place, record: PodRecord | None) -> RankStatus:
    status = RankStatus(role=place.role, rank=place.rank, index=place.index)
    if record is None:
        return status
    pod, end = record.object, end_of(record.object)
    return replace(
        status,
        pod=name(pod),
        pod_uid=uid(pod),
        node=text(pod, "spec", "nodeName"),
        phase=_phase(record),
        ready="Ready" in conditions(pod) and not record.deleted and end is None,
        exit_code=end.exit_code if end else None,
        reason=_reason(pod),
        message=_message(pod),
        restarts=restart_count(pod),
        started_at=(end.started_at if end else None) or started_at(pod),
        finished_at=end.finished_at if end else None,
        is_collateral=has_failed(pod) and not is_own_end(record) and disruption(pod) is None,
    )


def _phase(record: PodRecord) -> str:
    phase = text(record.object, "status", "phase") or "Pending"
    if record.deleted and phase != "Succeeded" and not is_own_end(record):
        return DELETED
    return "Failed" if phase == "Running" and has_failed(record.object) else phase


def _reason(pod: KubernetesObject) -> str:
    end, disrupted = end_of(pod), conditions(pod).get("DisruptionTarget")
    if end and end.reason == "OOMKilled":
        return end.reason
    return (
        text(pod, "status", "reason")
        or (end.reason if end else "")
        or waiting_state(pod)[0]
        or (disrupted.reason if disrupted else "")
    )


def _message(pod: KubernetesObject) -> str:
    end, disrupted = end_of(pod), conditions(pod).get("DisruptionTarget")
    return (
        text(pod, "status", "message")
        or (end.message if end else "")
        or waiting_state(pod)[1]
        or (disrupted.message if disrupted else "")
    )
