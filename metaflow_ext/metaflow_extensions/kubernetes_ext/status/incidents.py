"""The moments at which ranks came to harm, in order: the first one is the culprit's, all later ones may be its victims'.

The order is that of the watch, which sees one stream; times in the objects are whole seconds of several clocks, and decide only
where the watch saw things at once (a list, after a gap), and between ranks of one node: a kubelet may tell late, its clock is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import IntEnum

from .ends import End, disruption, end_of, has_failed, is_own_end, last_failure
from .model import Observation, PodRecord
from .reading import deletion_requested_at, is_terminating, moment, text, true_condition

_FAR = datetime(2999, 1, 1, tzinfo=timezone.utc)
# A container that runs on so long after its grace period does so on a node that nobody hears from.
NODE_LOST_AFTER = timedelta(seconds=10)


class Harm(IntEnum):
    """In the order in which they are believed when all else is equal."""

    OWN_END = 0
    DISRUPTION = 1
    DELETION = 2


@dataclass(frozen=True, kw_only=True)
class Incident:
    harm: Harm
    rank: int
    record: PodRecord
    seen_at: datetime | None
    happened_at: datetime | None
    end: End | None = None

    @property
    def order(self) -> tuple[datetime, Harm, datetime, bool, int]:
        is_vague = self.end is None or self.end.reason in ("", "Error")
        return self.seen_at or self.happened_at or _FAR, self.harm, self.happened_at or _FAR, is_vague, self.rank


def incidents(chosen: Mapping[int, PodRecord]) -> list[Incident]:
    """Of the pods that speak for their ranks, the first one first."""
    found = sorted((one for rank, record in chosen.items() if (one := _incident(rank, record))), key=lambda one: one.order)
    earlier = [one for one in found if _was_earlier_on_its_node(one, found[0])]
    if not earlier:
        return found
    first = min(earlier, key=lambda one: (one.happened_at or _FAR, one.order))
    return [first, *(one for one in found if one is not first)]


def _was_earlier_on_its_node(one: Incident, first: Incident) -> bool:
    if one.harm is not Harm.OWN_END or first.harm is not Harm.OWN_END or not one.happened_at or not first.happened_at:
        return False
    node = text(one.record.object, "spec", "nodeName")
    return bool(node) and node == text(first.record.object, "spec", "nodeName") and one.happened_at < first.happened_at


def _incident(rank: int, record: PodRecord) -> Incident | None:
    pod = record.object
    end, disrupted = end_of(pod), disruption(pod)
    deleting = record.deleted or is_terminating(pod)
    if end and not has_failed(pod):
        return None
    if disrupted and (end or deleting):
        seen = min((at for at in (record.first_seen_ended, record.first_seen_deleting) if at), default=None)
        return Incident(harm=Harm.DISRUPTION, rank=rank, record=record, seen_at=seen, happened_at=disrupted.since, end=end)
    if end and is_own_end(record):
        at = end.finished_at or _ready_lost_at(record)
        return Incident(harm=Harm.OWN_END, rank=rank, record=record, seen_at=record.first_seen_ended, happened_at=at, end=end)
    if deleting and (last := last_failure(pod)):
        at = last.finished_at
        return Incident(
            harm=Harm.OWN_END, rank=rank, record=record, seen_at=record.first_seen_deleting, happened_at=at, end=last
        )
    if deleting:
        at = deletion_requested_at(pod)
        return Incident(
            harm=Harm.DELETION, rank=rank, record=record, seen_at=record.first_seen_deleting, happened_at=at, end=end
        )
    return None


def _ready_lost_at(record: PodRecord) -> datetime | None:
    """When a pod without container states (evicted) ended: its disruption, else its start is all it says."""
    found = true_condition(record.object, "DisruptionTarget")
    return found.since if found else moment(record.object, "status", "startTime")


def is_node_lost(record: PodRecord, observation: Observation) -> bool:
    """The pod was disrupted and should be gone by now, but nobody says that it ended: so its node can't."""
    pod = record.object
    due = moment(pod, "metadata", "deletionTimestamp")
    if record.deleted or due is None or observation.at <= due + NODE_LOST_AFTER:
        return False
    return end_of(pod) is None and disruption(pod) is not None
