"""Tables as kubectl prints them: columns in capitals, as wide as they must be. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """None and "" are shown as `-`, so that a line can be cut at its blanks."""
    cells = [[*columns], *[["-" if cell is None or cell == "" else str(cell) for cell in row] for row in rows]]
    widths = [max(len(line[column]) for line in cells) for column in range(len(columns))]
    return ["   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def short_age(seconds: int) -> str:
    """Kubernetes' way: 12s, 5m, 3h, 2d."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size * (2 if unit != "d" else 1):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def seconds_since(moment: Any, now: datetime) -> int:
    """Of an RFC 3339 time stamp; 0 for what is none."""
    try:
        return int((now - datetime.fromisoformat(str(moment).replace("Z", "+00:00"))).total_seconds())
    except ValueError:
        return 0
