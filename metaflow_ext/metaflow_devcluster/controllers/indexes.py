"""Sets of completion indexes in the notation of Job statuses: "0,2-4"."""

from __future__ import annotations

from collections.abc import Iterable


def parse_indexes(text: str | None) -> set[int]:
    found: set[int] = set()
    for part in (text or "").split(","):
        first, dash, last = part.partition("-")
        if first:
            found.update(range(int(first), int(last if dash else first) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """Runs of three and more are written as a range, as the Job controller does."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts: list[str] = []
    for run in runs:
        parts.extend([f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(index) for index in run])
    return ",".join(parts)
