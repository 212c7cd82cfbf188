"""Ranks for the pods of a NonIndexed Job, which are all alike: in the order of their creation, a replacement in the place of one that is over."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone

from .ends import has_failed
from .layout import has_index
from .model import PodRecord
from .reading import created_at, is_terminating, name, uid

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def slots(records: Iterable[PodRecord], size: int) -> dict[str, int]:
    """The index of each pod by uid (by name where it has none); pods beyond `size` get none."""
    holders: list[PodRecord] = []
    given: dict[str, int] = {}
    alike = [record for record in records if not has_index(record.object)]
    for record in sorted(alike, key=lambda one: created_at(one.object) or _EPOCH):
        if len(holders) < size:
            holders.append(record)
            slot = len(holders) - 1
        else:
            over = [index for index, holder in enumerate(holders) if _is_over(holder)]
            if not over:
                continue
            slot = min(over, key=lambda index: _over_since(holders[index]))
            holders[slot] = record
        given[uid(record.object) or name(record.object)] = slot
    return given


def _is_over(record: PodRecord) -> bool:
    """It failed or was taken away: its Job starts another one instead."""
    return record.deleted or is_terminating(record.object) or has_failed(record.object)


def _over_since(record: PodRecord) -> datetime:
    seen = [at for at in (record.first_seen_ended, record.first_seen_deleting) if at]
    return min(seen, default=_EPOCH)
