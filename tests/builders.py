"""Values for tests: every field has a default, a test names only what it is about."""

from __future__ import annotations

from typing import Any

from metaflow_extensions.kubernetes_ext.spec.environment import literals
from metaflow_extensions.kubernetes_ext.spec.launch import CONTROL, WORKER, ContainerSpec, Group, LaunchSpec


def make_container(**fields: Any) -> ContainerSpec:
    defaults: dict[str, Any] = {
        "name": "train",
        "image": "python:3.11",
        "command": ("bash", "-c", "python flow.py step train"),
        "env": literals({"MF_WORLD_SIZE": 1}),
    }
    return ContainerSpec(**{**defaults, **fields})


def make_group(name: str = CONTROL, replicas: int = 1, container: ContainerSpec | None = None, **fields: Any) -> Group:
    return Group(name=name, replicas=replicas, container=container or make_container(), **fields)


def make_gang(size: int, container: ContainerSpec | None = None, **fields: Any) -> tuple[Group, ...]:
    """The groups of a Metaflow gang: control, and workers where there are any."""
    control = make_group(CONTROL, 1, container, **fields)
    return (control,) if size == 1 else (control, make_group(WORKER, size - 1, container, **fields))


def make_spec(
    size: int = 1, *, groups: tuple[Group, ...] | None = None, container: ContainerSpec | None = None, **fields: Any
) -> LaunchSpec:
    """A gang of `size`; `groups` or `container` in place of the default ones, `fields` are LaunchSpec's."""
    defaults: dict[str, Any] = {"name": "digits-train-0123456789", "namespace": "default"}
    return LaunchSpec(groups=groups or make_gang(size, container), **{**defaults, **fields})
