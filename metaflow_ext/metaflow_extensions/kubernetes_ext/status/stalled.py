"""Whether a workload as a whole stands still, and how that is told: in one sentence, in a few lines, and in the annotation by
which others than its step process know it.

Every rank must stand still. Ranks that compute, all at one and the same place, are taken to compute (a fit in C looks like that);
one that is idle, or elsewhere than the others, is worth a word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from ..spec import labels
from .model import Stalled
from .reading import mapping, moment, text
from .stacks import FINISHED, SILENT, STILL, Place, RankStack, folded, odd_ones, places

HINT = "Nothing is stopped because of it. `kubernetes stacks` shows how each rank stands now, `kubernetes kill` ends them."
_MOST_PLACES = 6
_MOST_CLAUSES = 3
_LONGEST = 200  # characters of a line


def stalled(ranks: Sequence[RankStack], limit: timedelta, at: datetime) -> Stalled | None:
    """None where a rank gets on. A rank that does not answer counts as standing still where others do."""
    own = [one for one in ranks if one.state in (STILL, FINISHED)]
    if not any(one.state == STILL for one in own) or not all(one.state == SILENT or _is_long(one, limit, at) for one in ranks):
        return None
    found = places(ranks)
    if len(found) == 1 and not any(one.is_idle for one in own):
        return None
    since = max(one.since for one in own if one.since is not None)
    return Stalled(since=since, summary=_summary(found, since, len(ranks)), lines=tuple(_lines(found)))


def _is_long(one: RankStack, limit: timedelta, at: datetime) -> bool:
    """Not all stop in the same moment, nor are all clocks the same: it is the first ones for which the limit is."""
    return one.state in (STILL, FINISHED) and one.since is not None and one.since <= at - limit / 2


def _summary(found: Sequence[Place], since: datetime, size: int) -> str:
    when = since.astimezone(timezone.utc).strftime("%H:%M:%S UTC")
    if size == 1:
        return f"The task has made no progress since {when}: it stands at {found[0].frame}."
    if len(found) == 1:
        return f"No rank has made progress since {when}: all {size} stand at {found[0].frame}."
    whose = [folded(place.numbers) for place in found]
    if odd_ones(found):
        whose[-1] = f"the other {len(found[-1].ranks)}"
    clauses = [_clause(place, who) for place, who in zip(found, whose, strict=True)]
    if len(clauses) > _MOST_CLAUSES:
        clauses = [*clauses[: _MOST_CLAUSES - 1], f"{len(clauses) - _MOST_CLAUSES} places more", clauses[-1]]
    return f"No rank has made progress since {when}: {', '.join(clauses)}."


def _clause(place: Place, who: str) -> str:
    """ "rank 2 stands at flow.py:57 in train"."""
    is_one = len(place.ranks) == 1
    if place.frame:
        return f"{who} stand{'s' if is_one else ''} at {place.frame}"
    if place.ranks[0].state == FINISHED:
        return f"{who} {'has' if is_one else 'have'} ended the step's code"
    return f"{who} {'does' if is_one else 'do'} not answer"


def _lines(found: Sequence[Place]) -> list[str]:
    lines = []
    for place in found[:_MOST_PLACES]:
        first, who = place.ranks[0], folded(place.numbers)
        if place.frame is None:
            lines.append(_clause(place, who))
            continue
        lines.append(f"{who} ({place.load}): {place.frame.with_code}")
        if first.stack[-1] != place.frame:
            lines.append(f"  innermost: {first.stack[-1].with_code}")
        if first.progress:
            lines.append(f"  said last: {first.progress}")
    return [line[:_LONGEST] for line in lines]


def as_annotation(found: Stalled | None) -> str | None:
    if found is None:
        return None
    return json.dumps({"since": found.since.isoformat(), "summary": found.summary, "lines": [*found.lines]})


def of_workload(workload: Any) -> Stalled | None:
    """What its step process has written on it."""
    try:
        return of_json(json.loads(text(workload, "metadata", "annotations", labels.STALLED) or "null"))
    except ValueError:
        return None


def of_json(value: Any) -> Stalled | None:
    since = moment(value, "since")
    if since is None:
        return None
    lines = mapping(value).get("lines")
    return Stalled(since=since, summary=text(value, "summary"), lines=tuple(map(str, lines)) if isinstance(lines, list) else ())
