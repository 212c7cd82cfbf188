"""Workloads that are AppWrappers of MCAD (v1beta1), the dispatcher before AppWrapper's own controller."""

from __future__ import annotations

from dataclasses import dataclass

from ..manifests.mcad import mcad_appwrapper
from ..spec.gang import COSCHEDULING
from ..spec.launch import LaunchSpec
from ..status.mcad import mcad_status
from ..status.model import Observation, WorkloadStatus
from .base import KindOfBarePods, Manifest


@dataclass(frozen=True, kw_only=True)
class MCADBackend(KindOfBarePods):
    """`group` was mcad.ibm.com before 2023."""

    group: str = "workload.codeflare.dev"
    version: str = "v1beta1"
    kind: str = "AppWrapper"
    plural: str = "appwrappers"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.mcad.mcad_appwrapper`."""
        return mcad_appwrapper(spec, self.api_version)

    def pod_group(self, spec: LaunchSpec) -> Manifest | None:
        """Those of the coscheduling plugin are in the AppWrapper."""
        return None if spec.gang == COSCHEDULING else super().pod_group(spec)

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.mcad.mcad_status`."""
        return mcad_status(observation, previous)
