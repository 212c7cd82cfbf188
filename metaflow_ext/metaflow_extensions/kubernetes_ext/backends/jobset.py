"""Workloads that are JobSets: every gang, and gangs of one."""

from __future__ import annotations

from dataclasses import dataclass

from ..manifests.jobset import jobset
from ..spec import labels
from ..spec.launch import LaunchSpec
from ..status.jobset import jobset_status
from ..status.model import Observation, WorkloadStatus
from .base import Kind, Manifest


@dataclass(frozen=True, kw_only=True)
class JobSetBackend(Kind):
    """`group` and `version` of the JobSet API are configurable in Metaflow, and so here."""

    group: str = "jobset.x-k8s.io"
    version: str = "v1alpha2"
    kind: str = "JobSet"
    plural: str = "jobsets"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.jobset.jobset`."""
        return jobset(spec, self.api_version)

    def pod_selector(self, name: str) -> str:
        """The label JobSet's controller puts on every pod."""
        return f"{labels.JOBSET_NAME}={name}"

    def job_selector(self, name: str) -> str | None:
        """The label JobSet's controller puts on every Job."""
        return f"{labels.JOBSET_NAME}={name}"

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.jobset.jobset_status`."""
        return jobset_status(observation, previous)
