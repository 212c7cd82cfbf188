"""The seam between the core and a kind of workload: one small mandatory interface."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from ..manifests.manifest import Manifest as Manifest
from ..manifests.pod_group import pod_group
from ..manifests.versions import without_fields
from ..spec import labels
from ..spec.launch import LaunchSpec
from ..status.model import Observation, WorkloadStatus


class Backend(Protocol):
    """Builds the object that is posted, and reads it back."""

    @property
    def api_version(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def plural(self) -> str: ...

    def build(self, spec: LaunchSpec) -> Manifest:
        """The workload as it is posted: a plain camelCase dict."""

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """The PodGroup that is posted before it; None where none is wanted, or the workload brings its own."""

    def without_fields(self, manifest: Manifest, unknown: Collection[str]) -> Manifest:
        """The manifest for a server that doesn't know the fields `unknown` (dotted paths); InvalidSpec where it needs one."""

    def pod_selector(self, name: str) -> str:
        """Label selector of all pods of the workload `name`, from their creation on."""

    def job_selector(self, name: str) -> str | None:
        """Label selector of its Jobs; None where the workload is itself the Job, or has none."""

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """What the observation means. An unreadable, empty or missing status keeps the previous phase."""


@runtime_checkable
class Wrapping(Protocol):
    """A backend whose controller makes another workload of the same name, which is followed too."""

    @property
    def wrapped(self) -> Backend: ...


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What most backends have in common: the kind of their object, and what follows from it."""

    group: str
    version: str
    kind: str
    plural: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """See `manifests.pod_group.pod_group`."""
        return pod_group(spec)

    def without_fields(self, manifest: Manifest, unknown: Collection[str]) -> Manifest:
        """See `manifests.versions.without_fields`. What is wrapped is for its own controller to create, and not looked at."""
        return without_fields(manifest, unknown)


@dataclass(frozen=True, kw_only=True)
class KindOfBarePods(Kind):
    """An object that wraps its ranks as pods, one by one (manifests.bare_pods)."""

    def pod_selector(self, name: str) -> str:
        """The label that its pods are made with."""
        return f"{labels.WORKLOAD}={name}"

    def job_selector(self, name: str) -> str | None:
        """None: it has no Jobs."""
        return None
