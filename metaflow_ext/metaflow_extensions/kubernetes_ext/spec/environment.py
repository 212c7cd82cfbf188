"""Environment variables of a container, each from exactly one source (Kubernetes: core/v1 EnvVar)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable, Mapping

from ..errors import InvalidSpec

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*\Z")


@dataclass(frozen=True)
class EnvVar:
    """`value` literally (no `$(VAR)` expansion: the manifest escapes it), or `field_path` of the pod (downward API)."""

    name: str
    value: str | None = None
    field_path: str | None = None

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise InvalidSpec(f"{self.name!r} can't be the name of an environment variable in Kubernetes.")
        if (self.value is None) == (self.field_path is None):
            raise InvalidSpec(f"Environment variable {self.name} needs a value or a field of the pod, one of them.")
        if self.value is not None and "\0" in self.value:
            raise InvalidSpec(f"The value of environment variable {self.name} holds a NUL byte, which no process can get.")


def literals(values: Mapping[str, object]) -> tuple[EnvVar, ...]:
    """Variables with literal values; None leaves a variable out."""
    return tuple(EnvVar(name, str(value)) for name, value in values.items() if value is not None)


def fields(paths: Mapping[str, str]) -> tuple[EnvVar, ...]:
    """Variables whose values are fields of the pod, e.g. {"POD": "metadata.name"}."""
    return tuple(EnvVar(name, field_path=path) for name, path in paths.items())


def merged(*layers: Iterable[EnvVar]) -> tuple[EnvVar, ...]:
    """All layers in order; of two variables with one name the later wins, in the place of the first."""
    found: dict[str, EnvVar] = {}
    for layer in layers:
        for variable in layer:
            found[variable.name] = variable
    return tuple(found.values())
