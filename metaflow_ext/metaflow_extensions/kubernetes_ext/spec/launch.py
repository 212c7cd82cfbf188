"""The one description of a workload that every front end makes and every backend takes.

A gang is a tuple of groups: Metaflow's `@parallel` is control + worker, a plain step is one group, a TorchX app is
one group per role. Nothing here does I/O or reads the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import InvalidSpec
from . import names
from .claims import ResourceClaim
from .environment import EnvVar, require_text, utf8_size
from .fault_tolerance import FaultTolerance
from .gang import KUEUE, require_gang
from .labels import KUEUE_QUEUE
from .overlay import require_overlay
from .placement import Placement
from .resources import Resources
from .security import require_security_context
from .storage import Storage

CONTROL = "control"
WORKER = "worker"

_MAX_SECONDS = 2**31 - 1
_MAX_ANNOTATIONS_BYTES = 256 * 1024  # of one object, keys included


@dataclass(frozen=True, kw_only=True)
class ContainerSpec:
    """One container: the program of every rank of a group. `command` is literal, as `env` is: Kubernetes expands nothing."""

    name: str
    image: str
    command: tuple[str, ...]
    env: tuple[EnvVar, ...] = ()
    env_from_secrets: tuple[str, ...] = ()
    resources: Resources = field(default_factory=Resources)
    ports: tuple[int, ...] = ()
    image_pull_policy: str | None = None
    security_context: Mapping[str, object] | None = None  # camelCase, as in a container

    def __post_init__(self) -> None:
        names.require_dns_label(self.name, "container name")
        if not isinstance(self.image, str) or not self.image or self.image != self.image.strip():
            raise InvalidSpec(f"image is the name of a container image, without blanks around it, not {self.image!r}.")
        if not self.command or isinstance(self.command, str):
            raise InvalidSpec(f"Container {self.name} has no command, or one that isn't a sequence of words.")
        for word in self.command:
            require_text(word, f"A word of the command of container {self.name}")
        seen: set[str] = set()
        for variable in self.env:
            if variable.name in seen:
                raise InvalidSpec(f"Container {self.name} has two environment variables {variable.name}.")
            seen.add(variable.name)
        for secret in self.env_from_secrets:
            names.require_dns_subdomain(secret, "secret")
        if self.image_pull_policy not in (None, "Always", "IfNotPresent", "Never"):
            raise InvalidSpec(f"image_pull_policy is Always, IfNotPresent or Never, not {self.image_pull_policy!r}.")
        if self.security_context is not None:
            require_security_context(self.security_context)
        for port in self.ports:
            if not _is_whole(port) or not 0 < port < 65536:
                raise InvalidSpec(f"port is a number from 1 to 65535, not {port!r}.")


@dataclass(frozen=True, kw_only=True)
class Group:
    """Ranks that run the same container: `replicas` pods, told apart by their completion index."""

    name: str
    replicas: int
    container: ContainerSpec
    placement: Placement = field(default_factory=Placement)
    claims: tuple[ResourceClaim, ...] = ()
    storage: Storage = field(default_factory=Storage)
    labels: Mapping[str, str] = field(default_factory=dict)  # of its Job and pods, over the workload's own
    annotations: Mapping[str, str] = field(default_factory=dict)
    overlays: tuple[Mapping[str, Any], ...] = ()  # laid over its pods one after the other (spec.overlay)
    networks: tuple[str, ...] = ()  # further ones, by Multus: names of NetworkAttachmentDefinitions, NAMESPACE/NAME@INTERFACE
    has_sidecars: bool = True  # False: Istio is told to inject none

    def __post_init__(self) -> None:
        names.require_dns_label(self.name, "group name")
        if not _is_whole(self.replicas) or self.replicas < 1:
            raise InvalidSpec(f"Group {self.name} has {self.replicas!r} replicas; it needs a whole number, at least 1.")
        _require_metadata(f"group {self.name}", self.labels, self.annotations)
        if len({claim.name for claim in self.claims}) != len(self.claims):
            raise InvalidSpec(f"Group {self.name} has two resource claims of one name.")
        for overlay in self.overlays:
            require_overlay(overlay, self.container.name)
        for network in self.networks:
            _require_network(network)
        if self.storage.devices:
            require_security_context({**(self.container.security_context or {}), "privileged": True})


@dataclass(frozen=True, kw_only=True)
class LaunchSpec:
    """A workload: what is posted is built from this alone.

    `name` is the workload's name in the cluster (a DNS label; `names.MAX_WORKLOAD_NAME` characters are safe for control and
    workers up to 1,000 ranks). Times are seconds. `deadline_seconds` limits every pod (spec.activeDeadlineSeconds),
    `ttl_seconds` how long a finished workload stays (None: until someone deletes it), `grace_seconds` is what a rank has
    between SIGTERM and SIGKILL. Labels and annotations are also its Jobs' and pods', except `labels.TOP_OBJECT_ONLY`.
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
    fault_tolerance: FaultTolerance | None = None  # of an AppWrapper alone
    priority: int | None = None  # of an AppWrapper of MCAD alone: larger ones are dispatched first
    requeues: int = 0  # of the same: how often it may be taken back because its pods don't get to run
    gang: str | None = None  # one of spec.gang.CHOICES; of POD_GROUPS, the pods are in a PodGroup of the workload's name

    def __post_init__(self) -> None:
        if not self.groups:
            raise InvalidSpec(f"Workload {self.name} has no groups.")
        if len({group.name for group in self.groups}) != len(self.groups):
            raise InvalidSpec(f"Workload {self.name} has two groups of the same name.")
        names.require_workload_name(self.name, [(group.name, group.replicas) for group in self.groups])
        names.require_dns_label(self.namespace, "namespace")
        if self.service_account is not None:
            names.require_dns_subdomain(self.service_account, "service account")
        for secret in self.image_pull_secrets:
            names.require_dns_subdomain(secret, "image pull secret")
        for what, seconds, least in (
            ("deadline", self.deadline_seconds, 1),
            ("time to live", self.ttl_seconds, 0),
            ("grace period", self.grace_seconds, 0),
        ):
            if seconds is not None and (not _is_whole(seconds) or not least <= seconds <= _MAX_SECONDS):
                raise InvalidSpec(
                    f"The {what} of workload {self.name} is {seconds!r} s; it is a whole number, at least {least}."
                )
        _require_metadata("workload", self.labels, self.annotations)
        if self.priority is not None and (not _is_whole(self.priority) or not -(2**31) <= self.priority < 2**31):
            raise InvalidSpec(f"The priority of workload {self.name} is a whole number of 32 bits, not {self.priority!r}.")
        if not _is_whole(self.requeues) or not 0 <= self.requeues < 2**31:
            raise InvalidSpec(f"Workload {self.name}: requeues is a whole number, at least 0, not {self.requeues!r}.")
        if self.gang is not None:
            require_gang(self.gang)
        if self.gang == KUEUE and KUEUE_QUEUE not in self.labels:
            raise InvalidSpec("gang is kueue, which admits what is in a queue: it needs `queue`.")

    @property
    def cautions(self) -> tuple[str, ...]:
        """What is to be said aloud before it is submitted."""
        return tuple(
            f"The ranks of group {group.name} are privileged containers, as the node's devices {', '.join(group.storage.devices)} "
            "need."
            for group in self.groups
            if group.storage.devices
        )

    @property
    def world_size(self) -> int:
        """Number of ranks of the whole gang."""
        return sum(group.replicas for group in self.groups)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _require_network(network: object) -> None:
    """Source: Kubernetes Network Custom Resource Definition De-facto Standard v1.3, 4.1.2.1.1 (a comma-delimited list)."""
    selected, at, interface = str(network).partition("@")
    namespace, slash, name = selected.rpartition("/")
    if not isinstance(network, str) or (at and not interface) or len(interface) > 15 or (slash and not namespace):
        raise InvalidSpec(f"A network is NAME, NAMESPACE/NAME or either with @INTERFACE, not {network!r}.")
    names.require_dns_subdomain(name, "network")
    if slash:
        names.require_dns_label(namespace, "namespace of a network")


def _require_metadata(where: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    for key, value in labels.items():
        names.require_label(key, value, where)
    size = 0
    for key, value in annotations.items():
        names.require_label_key(key, f"{where}: annotation")
        size += len(key) + utf8_size(value, f"{where}: annotation {key}")
    if size > _MAX_ANNOTATIONS_BYTES:
        raise InvalidSpec(f"{where}: its annotations have {size} bytes; Kubernetes takes {_MAX_ANNOTATIONS_BYTES}.")
