"""Which field of a manifest is whose word: what changes when an attribute is left out is from where that attribute is. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..backends.base import Manifest
from ..decorators.site_policy import BUILT_IN, SETTINGS, Effective
from ..errors import InvalidSpec

Build = Callable[[Mapping[str, Any]], Manifest]  # from the attributes that are not as they are; raises InvalidSpec


def explained(build: Build, effective: Effective, defaults: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """(field, attribute, where its value is from) of all that somebody has said; field "" where it is in none."""
    made, found = build({}), list[tuple[str, str, str]]()
    for name, origin in effective.origins.items():
        if origin != BUILT_IN:
            other = _without(build, name, defaults.get(name))
            fields = dict.fromkeys(differences(made, other) if other else ())
            if not fields and origin != SETTINGS:
                fields = {"": None}
            found += [(field, name, origin) for field in fields]
    return sorted(found, key=lambda row: (not row[0], row))


def _without(build: Build, name: str, default: Any) -> Manifest | None:
    """The manifest without what is said of this attribute, or with something else where there has to be something."""
    for value in (default, "other"):
        try:
            return build({name: value})
        except InvalidSpec:
            continue
    return None


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """The paths at which two manifests differ: spec.replicatedJobs[].template. Things of a list are compared one by one."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in {**one, **other}:
            yield from differences(one.get(name), other.get(name), f"{path}.{name}" if path else str(name))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for mine, its in zip(one, other, strict=True):
            yield from differences(mine, its, f"{path}[]")
    elif one != other:
        yield path
