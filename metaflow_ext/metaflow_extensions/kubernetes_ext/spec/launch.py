"""The one description of a workload that every front end makes and every backend takes.

A gang is a tuple of groups: Metaflow's `@parallel` is control + worker, a plain step is one group, a TorchX app is
one group per role. Nothing here does I/O or reads the environment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping

from ..errors import InvalidSpec
from . import names
from .environment import EnvVar
from .placement import Placement
from .resources import Resources
from .storage import Storage

CONTROL = "control"
WORKER = "worker"


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """One container: the program of every rank of a group."""

    name: str
    image: str
    command: tuple[str, ...]
    env: tuple[EnvVar, ...] = ()
    env_from_secrets: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)
    ports: tuple[int, ...] = ()
    image_pull_policy: str | None = None
    security_context: Mapping[str, object] | None = None  # camelCase, as in a pod

    def __post_init__(self) -> None:
        names.require_dns_label(self.name, "container name")
        if not self.image:
            raise InvalidSpec(f"Container {self.name} has no image.")
        if not self.command:
            raise InvalidSpec(f"Container {self.name} has no command.")
        if self.image_pull_policy not in (None, "Always", "IfNotPresent", "Never"):
            raise InvalidSpec(f"image_pull_policy is Always, IfNotPresent or Never, not {self.image_pull_policy!r}.")
        for port in self.ports:
            if not 0 < port < 65536:
                raise InvalidSpec(f"port is a number from 1 to 65535, not {port}.")


@dataclass(frozen=True, kw_only=True)
class Group:
    """Ranks that run the same container: `replicas` pods, told apart by their completion index."""

    name: str
    replicas: int
    container: ContainerSpec
    placement: Placement = field(default_factory=Placement)
    storage: Storage = field(default_factory=Storage)
    labels: Mapping[str, str] = field(default_factory=dict)  # of its pods, beside the workload's own
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names.require_dns_label(self.name, "group name")
        if self.replicas < 1:
            raise InvalidSpec(f"Group {self.name} has {self.replicas} replicas; it needs at least 1.")


@dataclass(frozen=True, kw_only=True)
class LaunchSpec:
    """A workload: what is posted is built from this alone.

    `name` is the workload's name in the cluster (DNS label, at most `names.MAX_WORKLOAD_NAME`). Times are seconds.
    `deadline_seconds` limits every pod (spec.activeDeadlineSeconds), `ttl_seconds` how long a finished workload stays.
    """

    name: str
    namespace: str
    groups: tuple[Group, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    service_account: str | None = None
    automount_service_account_token: bool | None = None
    image_pull_secrets: tuple[str, ...] = ()
    deadline_seconds: int | None = None
    ttl_seconds: int | None = None
    grace_seconds: int = 30

    def __post_init__(self) -> None:
        names.require_workload_name(self.name, [(group.name, group.replicas) for group in self.groups])
        names.require_dns_label(self.namespace, "namespace")
        if not self.groups:
            raise InvalidSpec(f"Workload {self.name} has no groups.")
        if len({group.name for group in self.groups}) != len(self.groups):
            raise InvalidSpec(f"Workload {self.name} has two groups of the same name.")
        for what, seconds, least in (
            ("deadline", self.deadline_seconds, 1),
            ("time to live", self.ttl_seconds, 0),
            ("grace period", self.grace_seconds, 0),
        ):
            if seconds is not None and seconds < least:
                raise InvalidSpec(f"The {what} of workload {self.name} is {seconds} s; it must be at least {least} s.")
        for where, labels in (("workload", self.labels), *((f"group {g.name}", g.labels) for g in self.groups)):
            for key, value in labels.items():
                names.require_label(key, value, where)
        for annotations in (self.annotations, *(g.annotations for g in self.groups)):
            for key in annotations:
                names.require_label_key(key, "annotation")

    @property
    def world_size(self) -> int:
        """Number of ranks of the whole gang."""
        return sum(group.replicas for group in self.groups)
