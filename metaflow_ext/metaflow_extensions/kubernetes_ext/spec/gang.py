"""Who sees to it that the ranks of a gang start together or not at all."""

from __future__ import annotations

from ..errors import InvalidSpec

AUTO, KUEUE, COSCHEDULING, NATIVE, NONE = "auto", "kueue", "coscheduling", "native", "none"
CHOICES = (AUTO, KUEUE, COSCHEDULING, NATIVE, NONE)
POD_GROUPS = (COSCHEDULING, NATIVE)  # those that want a PodGroup beside the workload


def require_gang(value: object) -> None:
    if value not in CHOICES:
        raise InvalidSpec(f"gang is one of {', '.join(CHOICES)}, not {value!r}.")
