"""The reducer for pods that have no Job above them: the ranks of an AppWrapper that wraps them one by one.

Nobody but the wrapper's controller runs a rank again, and it does so with all of them: a rank that failed, or is gone for good,
is the end of this try. What the wrapper says of it is for its own reducer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from .incidents import is_node_lost
from .layout import Layout
from .model import Observation, PodRecord, WorkloadStatus
from .reading import created_at, is_terminating, mapping, owner_uids, text, uid
from .verdict import View, failed, has_own_failure, have_all_succeeded, succeeded, unfinished, view_of

# A controller that takes pods away says so before or soon after; news of both come by different watches.
_NOT_TAKEN_BACK_AFTER = timedelta(seconds=60)


def pods_status(observation: Observation, layout: Layout, restarts: int) -> WorkloadStatus:
    """The pods of the last try, judged. `observation.workload` is the wrapper."""
    pods = of_last_try(_own(observation), layout)
    view = view_of(replace(observation, pods=pods, jobs=()), layout, 0, restarts, None)
    if have_all_succeeded(view):
        return succeeded(view)
    if has_own_failure(view) or _is_one_lost(view):
        return failed(view)
    return unfinished(view, is_suspended=False, has_status=bool(mapping(observation.workload, "status")))


def of_last_try(records: Iterable[PodRecord], layout: Layout) -> tuple[PodRecord, ...]:
    """Without those of the tries before: each try has pods of the same names, made after those of the last were gone."""
    known = tuple(records)
    began = _last_try_began(known, layout)
    if began is None:
        return known
    return tuple(one for one in known if not _is_going(one) or (created_at(one.object) or began) >= began)


def _last_try_began(records: Iterable[PodRecord], layout: Layout) -> datetime | None:
    """When the first pod was made for a rank that had one before; None in the first try."""
    by_rank: dict[int, list[datetime]] = {}
    for record in records:
        place, made = layout.place(record.object), created_at(record.object)
        if place and made:
            by_rank.setdefault(place.rank, []).append(made)
    tries = max(map(len, by_rank.values()), default=0)
    return min(max(made) for made in by_rank.values() if len(made) == tries) if tries > 1 else None


def _is_going(record: PodRecord) -> bool:
    return record.deleted or is_terminating(record.object)


def _is_one_lost(view: View) -> bool:
    if is_terminating(view.observation.workload):
        return False
    return any(is_node_lost(one, view.observation) or _is_gone(one, view.observation.at) for one in view.case.chosen.values())


def _is_gone(record: PodRecord, at: datetime) -> bool:
    if text(record.object, "status", "phase") == "Succeeded" or not record.deleted or record.first_seen_deleting is None:
        return False
    return at > record.first_seen_deleting + _NOT_TAKEN_BACK_AFTER


def _own(observation: Observation) -> tuple[PodRecord, ...]:
    """Without the pods of an earlier wrapper of the same name."""
    owner = uid(observation.workload)
    owners = ((one, owner_uids(one.object)) for one in observation.pods)
    return tuple(one for one, told in owners if not owner or not told or owner in told)
