"""Workloads that are AppWrappers of MCAD (v1beta1), the dispatcher before AppWrapper's own controller."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..manifests.mcad import mcad_appwrapper
from ..manifests.pod_group import pod_group
from ..manifests.versions import without_fields
from ..spec import labels
from ..spec.gang import COSCHEDULING
from ..spec.launch import LaunchSpec
from ..status.mcad import mcad_status
from ..status.model import Observation, WorkloadStatus
from .base import Manifest


@dataclass(frozen=True, kw_only=True)
class MCADBackend:
    """`group` was mcad.ibm.com before 2023."""

    group: str = "workload.codeflare.dev"
    version: str = "v1beta1"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.mcad.mcad_appwrapper`."""
        return mcad_appwrapper(spec, self.api_version)

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """Those of the coscheduling plugin are in the AppWrapper."""
        return None if spec.gang == COSCHEDULING else pod_group(spec)

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
        """See `status.mcad.mcad_status`."""
        return mcad_status(observation, previous)
