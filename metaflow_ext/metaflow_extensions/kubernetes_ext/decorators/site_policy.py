"""Where the value of each attribute of @kubernetes comes from: the step, @resources, a setting, or what a site says for all steps.

From weak to strong: the attribute's own default, METAFLOW_KUBERNETES_DEFAULTS, the attribute's own setting, @resources, the step
(or --with), METAFLOW_KUBERNETES_FORCED. Decided in the process of the run: tasks and step processes get the outcome.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidSpec
from . import attributes as attribute_table
from .structured import mapping

DEFAULTS, FORCED, IMAGE_PREFIX = (f"METAFLOW_KUBERNETES_{name}" for name in ("DEFAULTS", "FORCED", "IMAGE_PREFIX"))
STEP, RESOURCES, BUILT_IN = "the step", "@resources", "default"
SETTINGS = "Metaflow's settings"  # which core puts into attributes before anybody sees them
_JOINED = ("tolerations", "image_pull_secrets", "secrets", "pod_overlay")  # forced ones come after the step's own


@dataclass(frozen=True, kw_only=True)
class SitePolicy:
    """`own` are the settings of single attributes, as text."""

    defaults: Mapping[str, Any] = field(default_factory=dict)
    forced: Mapping[str, Any] = field(default_factory=dict)
    image_prefix: str = ""
    own: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for setting, values in ((DEFAULTS, self.defaults), (FORCED, self.forced)):
            for name in values:
                _require_attribute(name, setting)


@dataclass(frozen=True)
class Effective:
    """The attributes that count. `origins` says of each whose word it is: STEP, RESOURCES, SETTINGS, BUILT_IN or the name of a setting."""

    attributes: Mapping[str, Any]
    origins: Mapping[str, str]


def read_policy() -> SitePolicy:
    """As Metaflow is configured here. Raises InvalidSpec."""
    from metaflow.metaflow_config_funcs import from_conf

    own = {name: from_conf(attribute_table.setting(name)) for name in attribute_table.OURS}
    return SitePolicy(
        defaults=mapping(from_conf("KUBERNETES_DEFAULTS"), DEFAULTS),
        forced=mapping(from_conf("KUBERNETES_FORCED"), FORCED),
        image_prefix=from_conf("KUBERNETES_IMAGE_PREFIX") or "",
        own={name: value for name, value in own.items() if value not in (None, "")},
    )


def effective(
    attributes: Mapping[str, Any],
    defaults: Mapping[str, Any],
    given: Collection[str],
    from_resources: Collection[str],
    policy: SitePolicy,
) -> Effective:
    """`attributes` are a step's with Metaflow's own settings in them, `defaults` those of the decorator, `given` the names that
    the step itself has set, `from_resources` those that @resources has."""
    values, origins = dict(attributes), dict.fromkeys(attributes, BUILT_IN)
    for name, value in attributes.items():
        if name in from_resources:
            origins[name] = RESOURCES
        elif name in given and value is not None:
            origins[name] = STEP
        elif name in policy.own:
            values[name], origins[name] = policy.own[name], f"METAFLOW_{attribute_table.setting(name)}"
        elif name in attribute_table.CORE and not attribute_table.is_same(value, defaults.get(name)):
            origins[name] = SETTINGS
        elif name in policy.defaults:
            values[name], origins[name] = policy.defaults[name], DEFAULTS
    for name, value in policy.forced.items():
        values[name] = _forced(name, values.get(name), value)
        origins[name] = FORCED
    image = values.get("image")
    if policy.image_prefix and isinstance(image, str) and not image.startswith(policy.image_prefix):
        values["image"], origins["image"] = policy.image_prefix + image, f"{IMAGE_PREFIX} before that of {origins['image']}"
    return Effective(values, origins)


def _forced(name: str, mine: Any, value: Any) -> Any:
    """Dictionaries are merged and lists joined: a site adds its labels and tolerations to the step's own."""
    if name in _JOINED:
        first, last = _as_list(mine), _as_list(value)
        return [*(one for one in first if one not in last), *last]
    if isinstance(mine, Mapping) and isinstance(value, Mapping):
        return {**mine, **value}
    return value


def _as_list(value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _require_attribute(name: Any, setting: str) -> None:
    known = [*attribute_table.CORE, *attribute_table.OURS]
    if name not in known:
        near = difflib.get_close_matches(str(name), known, 1)
        hint = f" Is {near[0]} meant?" if near else ""
        raise InvalidSpec(f"{setting}: @kubernetes has no attribute {name!r}.{hint}")
