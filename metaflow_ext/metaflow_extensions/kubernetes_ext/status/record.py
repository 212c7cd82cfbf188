"""A status as JSON-able values and back: what a step process leaves in Metaflow's metadata, and `--json` prints.

Reading is tolerant: an earlier or later version of this package may have written it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from datetime import datetime
from typing import Any

from . import stalled
from .model import Category, Failure, Phase, RankStatus, Waiting, WorkloadStatus
from .reading import integer, mapping, mappings, moment, text

MOST_RANKS = 256
_MOST_LAST_LINES = 50
_LONGEST_LINE = 2000  # characters


def as_json(status: WorkloadStatus) -> dict[str, Any]:
    """All that matters to people. Times are RFC 3339."""
    return {
        "phase": str(status.phase),
        "size": status.size,
        "restarts": status.restarts,
        "reason": status.reason,
        "message": status.message,
        "waiting": status.waiting and _plain(asdict(status.waiting)),
        "failure": status.failure and failure_as_json(status.failure),
        "stalled": status.stalled and _plain(asdict(status.stalled)),
        "ranks": [rank_as_json(rank) for rank in status.ranks],
    }


def rank_as_json(rank: RankStatus) -> dict[str, Any]:
    return _plain(asdict(rank))


def failure_as_json(failure: Failure) -> dict[str, Any]:
    return _plain(asdict(failure))


def bounded(status: WorkloadStatus) -> WorkloadStatus:
    """Small enough for a metadata service: the ranks that tell most, and the end of the last lines."""
    culprit = status.failure.rank if status.failure else None
    telling = sorted(
        status.ranks, key=lambda rank: (rank.rank != culprit, rank.is_collateral, rank.phase == "Succeeded", rank.rank)
    )
    kept = tuple(sorted(telling[:MOST_RANKS], key=lambda rank: rank.rank))
    failure = status.failure
    if failure is not None:
        lines = tuple(line[:_LONGEST_LINE] for line in failure.last_lines[-_MOST_LAST_LINES:])
        failure = replace(failure, last_lines=lines, events=tuple(line[:_LONGEST_LINE] for line in failure.events))
    return replace(status, ranks=kept, failure=failure)


def status_of(stored: Mapping[str, Any]) -> WorkloadStatus:
    """What `as_json` was given. What is missing or unknown has its default."""
    return WorkloadStatus(
        phase=_phase(text(stored, "phase")),
        size=integer(stored, "size") or 0,
        restarts=integer(stored, "restarts") or 0,
        reason=text(stored, "reason"),
        message=text(stored, "message"),
        waiting=_waiting(mapping(stored, "waiting")),
        failure=failure_of(mapping(stored, "failure")),
        stalled=stalled.of_json(mapping(stored, "stalled")),
        ranks=tuple(_rank(one) for one in mappings(stored, "ranks")),
    )


def failure_of(stored: Mapping[str, Any]) -> Failure | None:
    if not stored:
        return None
    return Failure(
        category=_category(stored),
        summary=text(stored, "summary"),
        resolution=text(stored, "resolution"),
        rank=integer(stored, "rank"),
        exit_code=integer(stored, "exit_code"),
        is_retryable=stored.get("is_retryable") is not False,
        at=moment(stored, "at"),
        last_lines=_lines(stored, "last_lines"),
        events=_lines(stored, "events"),
        **{key: text(stored, key) for key in ("role", "pod", "node", "reason")},
    )


def _lines(stored: Mapping[str, Any], key: str) -> tuple[str, ...]:
    found = stored.get(key)
    return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()


def _waiting(stored: Mapping[str, Any]) -> Waiting | None:
    if not stored:
        return None
    return Waiting(
        category=_category(stored),
        summary=text(stored, "summary"),
        detail=text(stored, "detail"),
        since=moment(stored, "since"),
        is_hopeless=stored.get("is_hopeless") is True,
        is_ordinary=stored.get("is_ordinary") is True,
    )


def _rank(stored: Mapping[str, Any]) -> RankStatus:
    return RankStatus(
        rank=integer(stored, "rank") or 0,
        index=integer(stored, "index") or 0,
        ready=stored.get("ready") is True,
        exit_code=integer(stored, "exit_code"),
        restarts=integer(stored, "restarts") or 0,
        started_at=moment(stored, "started_at"),
        finished_at=moment(stored, "finished_at"),
        is_collateral=stored.get("is_collateral") is True,
        **{key: text(stored, key) for key in _RANK_TEXTS},
    )


_RANK_TEXTS = tuple(field.name for field in fields(RankStatus) if field.type == "str")


def _phase(name: str) -> Phase:
    return Phase(name) if name in set(map(str, Phase)) else Phase.PENDING


def _category(stored: Mapping[str, Any]) -> Category:
    name = text(stored, "category")
    return Category(name) if name in set(map(str, Category)) else Category.UNKNOWN


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _value(value) for key, value in values.items()}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (Category, Phase)):
        return value.value
    return [*value] if isinstance(value, tuple) else value
