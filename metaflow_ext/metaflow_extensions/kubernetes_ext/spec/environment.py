"""Environment variables of a container, each from exactly one source (Kubernetes: core/v1 EnvVar)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import InvalidSpec

# Linux (MAX_ARG_STRLEN) lets no single argument or "name=value" of a new process be longer, its end mark included.
MAX_STRING_BYTES = 128 * 1024 - 1

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*\Z")
# https://kubernetes.io/docs/concepts/workloads/pods/downward-api/
_FIELD_PATH = re.compile(
    r"(metadata\.(name|namespace|uid|(labels|annotations)\['[^']+'\])"
    r"|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?))\Z"
)


def utf8_size(text: object, what: str) -> int:
    """Bytes of `text`; InvalidSpec unless it is a string that UTF-8, and so the API server, can hold."""
    if not isinstance(text, str):
        raise InvalidSpec(f"{what} must be text, not {text!r}.")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise InvalidSpec(f"{what} holds half of a surrogate pair, which is not valid Unicode.") from None


def require_text(text: object, what: str, extra_bytes: int = 0) -> None:
    """InvalidSpec unless `text` can be handed to a process: Unicode text without NUL, short enough for Linux."""
    size = utf8_size(text, what) + extra_bytes
    if "\0" in str(text):
        raise InvalidSpec(f"{what} holds a NUL byte, which no process can get.")
    if size > MAX_STRING_BYTES:
        raise InvalidSpec(f"{what} has {size} bytes; Linux starts no process with one of over {MAX_STRING_BYTES}.")


@dataclass(frozen=True)
class EnvVar:
    """`value` literally (no `$(VAR)` expansion: the manifest escapes it), or `field_path` of the pod (downward API), or a
    `template` with `$(VAR)` for variables that come before it."""

    name: str
    value: str | None = None
    field_path: str | None = None
    template: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.match(self.name) or self.name == "." or self.name.startswith(".."):
            raise InvalidSpec(
                f"{self.name!r} can't be the name of an environment variable in Kubernetes: letters, digits, '_', '-' or '.', "
                "no digit first."
            )
        if sum(source is not None for source in (self.value, self.field_path, self.template)) != 1:
            raise InvalidSpec(f"Environment variable {self.name} needs a value, a field of the pod or a template, one of them.")
        if self.field_path is None:
            given = self.template if self.value is None else self.value
            require_text(given, f"The value of environment variable {self.name}", extra_bytes=len(self.name) + 1)
        if self.field_path is not None and not _FIELD_PATH.match(self.field_path):
            raise InvalidSpec(f"Environment variable {self.name}: {self.field_path!r} is not a field of a pod that it can get.")


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
