"""Workloads that are AppWrappers around a JobSet, a Job, or pods."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..manifests.appwrapper import appwrapper, appwrapper_of_pods
from ..spec.launch import LaunchSpec
from ..status.appwrapper import appwrapper_status
from ..status.model import Observation, WorkloadStatus
from .base import Backend, Kind, KindOfBarePods, Manifest
from .jobset import JobSetBackend


@dataclass(frozen=True, kw_only=True)
class AppWrapperBackend(Kind):
    """`wrapped` builds what is in it, under the same name."""

    wrapped: Backend = field(default_factory=JobSetBackend)
    group: str = "workload.codeflare.dev"
    version: str = "v1beta2"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.appwrapper.appwrapper`."""
        return appwrapper(spec, self.wrapped.build(spec), self.api_version)

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
class PodsInAppWrapperBackend(KindOfBarePods):
    """For clusters without JobSet."""

    group: str = "workload.codeflare.dev"
    version: str = "v1beta2"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.appwrapper.appwrapper_of_pods`."""
        return appwrapper_of_pods(spec, self.api_version)

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.appwrapper.appwrapper_status`."""
        return appwrapper_status(observation, previous)
