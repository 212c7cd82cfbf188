"""Where ranks may run: the scheduling fields of a pod, alike in all groups of a gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidSpec
from . import names

_TOLERATION_KEYS = ("key", "operator", "value", "effect", "tolerationSeconds")
_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """`tolerations` are camelCase dicts as in a pod (core/v1 Toleration)."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str | None = None  # a PriorityClass
    scheduler: str | None = None  # spec.schedulerName; None: Kubernetes' own

    def __post_init__(self) -> None:
        for key, value in self.node_selector.items():
            names.require_label(key, value, "node_selector")
        for name, what in ((self.priority_class, "priority_class"), (self.scheduler, "scheduler")):
            if name is not None:
                names.require_dns_subdomain(name, what)
        for item in self.tolerations:
            _require_toleration(item)


def _require_toleration(item: Mapping[str, Any]) -> None:
    """Kubernetes' own rules (pkg/apis/core/validation ValidateTolerations), said before anything is sent."""
    unknown = sorted(set(item) - set(_TOLERATION_KEYS))
    if unknown:
        raise InvalidSpec(f"A toleration has no field {', '.join(unknown)}; it has {', '.join(_TOLERATION_KEYS)}.")
    key, operator, value, effect = (item.get(name) or "" for name in _TOLERATION_KEYS[:4])
    seconds = item.get("tolerationSeconds")
    if operator and operator not in _OPERATORS:
        raise InvalidSpec(f"The operator of a toleration is one of {', '.join(_OPERATORS)}, not {operator!r}.")
    if effect and effect not in _EFFECTS:
        raise InvalidSpec(f"The effect of a toleration is one of {', '.join(_EFFECTS)}, not {effect!r}.")
    if not key and operator != "Exists":
        raise InvalidSpec("A toleration without a key needs the operator Exists.")
    if operator == "Exists" and value:
        raise InvalidSpec(f"A toleration with the operator Exists has no value, not {value!r}.")
    if seconds is not None and effect != "NoExecute":
        raise InvalidSpec("A toleration with tolerationSeconds needs the effect NoExecute.")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int)):
        raise InvalidSpec(f"tolerationSeconds is a whole number, not {seconds!r}.")
    if key:
        names.require_label(key, value, "toleration")
