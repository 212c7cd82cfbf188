"""Where ranks may run: the scheduling fields of a pod, alike in all groups of a gang."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidSpec
from . import names
from .affinity import require_affinity

_TOLERATION_KEYS = ("key", "operator", "value", "effect", "tolerationSeconds")
_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


@dataclass(frozen=True, kw_only=True)
class Topology:
    """How near to each other the ranks are to run: within one domain of a level of a Kueue Topology.

    `level` is a label of nodes, e.g. "cloud.provider.com/topology-rack". `is_required`: never spread; else as near as can be.
    """

    level: str
    is_required: bool

    def __post_init__(self) -> None:
        names.require_label_key(self.level, "topology:")

    @staticmethod
    def parse(text: object) -> Topology:
        """From "required:LEVEL", "preferred:LEVEL", or a level alone, which is required."""
        if not isinstance(text, str):
            raise InvalidSpec(f"topology is required:LEVEL or preferred:LEVEL, LEVEL a label of nodes, not {text!r}.")
        how, colon, level = text.partition(":")
        if colon and how not in ("required", "preferred"):
            raise InvalidSpec(f"topology is required:LEVEL or preferred:LEVEL, LEVEL a label of nodes, not {text!r}.")
        return Topology(level=level if colon else text, is_required=how != "preferred")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """`tolerations` and `affinity` are camelCase as in a pod (core/v1 Toleration, Affinity)."""

    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()
    priority_class: str | None = None  # a PriorityClass
    scheduler: str | None = None  # spec.schedulerName; None: Kubernetes' own
    affinity: Mapping[str, Any] = field(default_factory=dict)
    runtime_class: str | None = None  # spec.runtimeClassName
    topology: Topology | None = None

    def __post_init__(self) -> None:
        for key, value in self.node_selector.items():
            names.require_label(key, value, "node_selector")
        for what in ("priority_class", "scheduler", "runtime_class"):
            name = getattr(self, what)
            if name is not None:
                names.require_dns_subdomain(name, what)
        require_affinity(self.affinity)
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
