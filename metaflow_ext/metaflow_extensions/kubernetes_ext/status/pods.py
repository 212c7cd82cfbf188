"""Pods into ranks: which pod speaks for a rank, and what it says. Keeps what the watch showed of pods that are gone.

Pods of one rank are told apart by the JobSet's restart-attempt label, then by uid; the newest counts, and one that is being
deleted never hides one that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from ..spec import labels
from .ends import (
    End,
    disruption,
    end_of,
    ended_before_deletion,
    has_failed,
    is_own_end,
    restart_count,
    started_at,
    waiting_state,
)
from .layout import Layout, Place
from .model import KubernetesObject, PodRecord, RankStatus
from .reading import Condition, created_at, integer, is_terminating, label, name, text, true_condition, uid

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
    by_rank: dict[int, list[PodRecord]] = {}
    for record in records:
        if attempt_of(record.object) == attempt and not _is_of_earlier_start(record, resumed_at):
            place = layout.place(record.object)
            if place is not None:
                by_rank.setdefault(place.rank, []).append(record)
    return {rank: _newest(candidates) for rank, candidates in by_rank.items()}


def _newest(candidates: Sequence[PodRecord]) -> PodRecord:
    """Of equally new ones the one seen last."""
    return candidates[0] if len(candidates) == 1 else max(reversed(candidates), key=_newness)


def _is_of_earlier_start(record: PodRecord, resumed_at: datetime | None) -> bool:
    if resumed_at is None or not (record.deleted or is_terminating(record.object)):
        return False
    created = created_at(record.object)
    return created is not None and created < resumed_at


def _newness(record: PodRecord) -> tuple[bool, datetime, bool]:
    going = record.deleted or is_terminating(record.object)
    is_live = not going and end_of(record.object) is None
    return is_live, created_at(record.object) or _EPOCH, not going


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
    pod, end, disrupted = record.object, end_of(record.object), true_condition(record.object, "DisruptionTarget")
    is_own = end is not None and is_own_end(record)
    return replace(
        status,
        pod=name(pod),
        pod_uid=uid(pod),
        node=text(pod, "spec", "nodeName"),
        phase=_phase(record, end, is_own),
        ready=end is None and not record.deleted and true_condition(pod, "Ready") is not None,
        exit_code=end.exit_code if end else None,
        reason=_reason(pod, end, disrupted),
        message=_message(pod, end, disrupted),
        restarts=restart_count(pod),
        started_at=(end.started_at if end else None) or started_at(pod),
        finished_at=end.finished_at if end else None,
        is_collateral=end is not None and not is_own and has_failed(pod) and disruption(pod) is None,
    )


def _phase(record: PodRecord, end: End | None, is_own: bool) -> str:
    phase = text(record.object, "status", "phase") or "Pending"
    if record.deleted and phase != "Succeeded" and not is_own:
        return DELETED
    return "Failed" if phase == "Running" and end is not None else phase


def _reason(pod: KubernetesObject, end: End | None, disrupted: Condition | None) -> str:
    if end and end.reason == "OOMKilled":
        return end.reason
    own = text(pod, "status", "reason") or (end.reason if end else "")
    return own or waiting_state(pod)[0] or (disrupted.reason if disrupted else "")


def _message(pod: KubernetesObject, end: End | None, disrupted: Condition | None) -> str:
    own = text(pod, "status", "message") or (end.message if end else "")
    return own or waiting_state(pod)[1] or (disrupted.message if disrupted else "")
