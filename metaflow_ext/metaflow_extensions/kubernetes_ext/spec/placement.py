"""Where ranks may run: the scheduling fields of a pod, alike in all groups of a gang."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping

from ..errors import InvalidSpec
from . import names

_TOLERATION_KEYS = {"key", "operator", "value", "effect", "tolerationSeconds"}


@dataclass(frozen=True, kw_only=True)
class Placement:
    """`tolerations` are camelCase dicts as in a pod (core/v1 Toleration)."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for key, value in self.node_selector.items():
            names.require_label(key, value, "node_selector")
        for toleration in self.tolerations:
            unknown = sorted(set(toleration) - _TOLERATION_KEYS)
            if unknown:
                raise InvalidSpec(
                    f"A toleration has no field {', '.join(unknown)}; it has {', '.join(sorted(_TOLERATION_KEYS))}."
                )
            if toleration.get("operator") not in (None, "", "Equal", "Exists"):
                raise InvalidSpec(f"The operator of a toleration is Equal or Exists, not {toleration['operator']!r}.")
