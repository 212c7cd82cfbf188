"""Workloads that are AppWrappers around a JobSet, a Job, or pods."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..manifests.appwrapper import appwrapper, appwrapper_of_pods
from ..manifests.pod_group import pod_group
from ..manifests.versions import without_fields
from ..spec import labels
from ..spec.launch import LaunchSpec
from ..status.appwrapper import appwrapper_status
from ..status.model import Observation, WorkloadStatus
from .base import Backend, Manifest
from .jobset import JobSetBackend


@dataclass(frozen=True, kw_only=True)
class AppWrapperBackend:
    """`wrapped` builds what is in it, under the same name."""

    wrapped: Backend = field(default_factory=JobSetBackend)
    group: str = "workload.codeflare.dev"
    version: str = "v1beta2"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.appwrapper.appwrapper`."""
        return appwrapper(spec, self.wrapped.build(spec), self.api_version)

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """See `manifests.pod_group.pod_group`."""
        return pod_group(spec)

    def without_fields(self, manifest: Manifest, unknown: Collection[str]) -> Manifest:
        """See `manifests.versions.without_fields`. What it wraps is for its own controller to create, and not looked at here."""
        return without_fields(manifest, unknown)

    def pod_selector(self, name: str) -> str:
        """The wrapped object's."""
        return self.wrapped.pod_selector(name)

    def job_selector(self, name: str) -> str | None:
        """The wrapped object's."""
        return self.wrapped.job_selector(name)

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.appwrapper.appwrapper_status`."""
        return appwrapper_status(observation, previous)


@dataclass(frozen=True, kw_only=True)
class PodsInAppWrapperBackend:
    """For clusters without JobSet."""

    group: str = "workload.codeflare.dev"
    version: str = "v1beta2"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.appwrapper.appwrapper_of_pods`."""
        return appwrapper_of_pods(spec, self.api_version)

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """See `manifests.pod_group.pod_group`."""
        return pod_group(spec)

    def without_fields(self, manifest: Manifest, unknown: Collection[str]) -> Manifest:
        """See `manifests.versions.without_fields`. What it wraps is not looked at here."""
        return without_fields(manifest, unknown)

    def pod_selector(self, name: str) -> str:
        """The label that its pods are made with."""
        return f"{labels.WORKLOAD}={name}"

    def job_selector(self, name: str) -> str | None:
        """None: it has no Jobs."""
        return None

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.appwrapper.appwrapper_status`."""
        return appwrapper_status(observation, previous)
