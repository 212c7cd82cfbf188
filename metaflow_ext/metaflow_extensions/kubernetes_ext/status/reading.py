"""Reading Kubernetes objects that may be incomplete, of another version, or plain wrong: never an exception, odd types read as absent.

Must not interpret: what a field means is said by the modules that ask for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ..spec import labels

# Years outside are typing errors, and arithmetic with them overflows.
_EARLIEST_YEAR, _LATEST_YEAR = 1971, 2999


def dig(value: Any, *path: str) -> Any:
    """`value[path[0]][path[1]]...`, or None where a step is missing or not a mapping."""
    for key in path:
        if type(value) is not dict and not isinstance(value, Mapping):  # the type is asked first since that is much quicker
            return None
        value = value.get(key)
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    found = dig(value, *path)
    return found if isinstance(found, Mapping) else {}


def mappings(value: Any, *path: str) -> list[Mapping[str, Any]]:
    """The mappings in the list at `path`; anything else in it is left out."""
    found = dig(value, *path)
    return [item for item in found if isinstance(item, Mapping)] if isinstance(found, (list, tuple)) else []


def text(value: Any, *path: str) -> str:
    found = dig(value, *path)
    if type(found) is str:
        return found
    if isinstance(found, bool) or not isinstance(found, (str, int, float)):
        return ""
    return str(found)


def integer(value: Any, *path: str) -> int | None:
    """An integer, also one written as a string or as 3.0."""
    found = dig(value, *path)
    if isinstance(found, bool):
        return None
    if isinstance(found, str):
        try:
            return int(found)
        except ValueError:
            return None
    if isinstance(found, float):
        return int(found) if math.isfinite(found) else None
    return found if isinstance(found, int) else None


def moment(value: Any, *path: str) -> datetime | None:
    """A metav1.Time or MicroTime, as an aware datetime in UTC."""
    found = dig(value, *path)
    if not isinstance(found, str):
        return None
    try:
        parsed = datetime.fromisoformat(found.strip().replace("Z", "+00:00"))
    except ValueError:
        return None
    if not _EARLIEST_YEAR < parsed.year < _LATEST_YEAR:
        return None
    return parsed.replace(tzinfo=timezone.utc) if parsed.tzinfo is None else parsed.astimezone(timezone.utc)


def name(obj: Any) -> str:
    return text(obj, "metadata", "name")


def uid(obj: Any) -> str:
    return text(obj, "metadata", "uid")


def created_at(obj: Any) -> datetime | None:
    return moment(obj, "metadata", "creationTimestamp")


def is_terminating(obj: Any) -> bool:
    return dig(obj, "metadata", "deletionTimestamp") is not None


def deletion_requested_at(obj: Any) -> datetime | None:
    """When the deletion was asked for: deletionTimestamp is that moment plus the grace period."""
    due = moment(obj, "metadata", "deletionTimestamp")
    grace = integer(obj, "metadata", "deletionGracePeriodSeconds") or 0
    return due - timedelta(seconds=min(max(grace, 0), 7 * 86400)) if due else None


def label(obj: Any, key: str) -> str:
    """A label, or the annotation of the same key: the indexes are written in both, in old clusters only in annotations."""
    return text(obj, "metadata", "labels", key) or text(obj, "metadata", "annotations", key)


def killed_by(obj: Any) -> str:
    """Who asked for this workload's deletion with `kubernetes kill`; "" where nobody did."""
    return text(obj, "metadata", "annotations", labels.KILLED_BY)


def owner_uids(obj: Any) -> set[str]:
    return {text(owner, "uid") for owner in mappings(obj, "metadata", "ownerReferences")} - {""}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition whose status is "True"; others are read as absent, since "False" ones stay for ever."""

    type: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None


def conditions(obj: Any) -> dict[str, Condition]:
    """The true conditions by type."""
    return {text(one, "type"): _condition(one) for one in mappings(obj, "status", "conditions") if one.get("status") == "True"}


def true_condition(obj: Any, kind: str) -> Condition | None:
    return _condition_with(obj, kind, "True")


def false_condition(obj: Any, kind: str) -> Condition | None:
    """The condition `kind` where its status is "False": for those whose False is the news (PodScheduled, QuotaReserved)."""
    return _condition_with(obj, kind, "False")


def _condition_with(obj: Any, kind: str, status: str) -> Condition | None:
    for one in mappings(obj, "status", "conditions"):
        if one.get("type") == kind and one.get("status") == status:
            return _condition(one)
    return None


def _condition(entry: Mapping[str, Any]) -> Condition:
    return Condition(
        type=text(entry, "type"),
        reason=text(entry, "reason"),
        message=text(entry, "message"),
        since=moment(entry, "lastTransitionTime"),
    )
