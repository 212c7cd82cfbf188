"""Workloads that are Jobs: steps without a gang."""

from __future__ import annotations

from dataclasses import dataclass

from ..manifests.job import job
from ..spec import labels
from ..spec.launch import LaunchSpec
from ..status.job import job_status
from ..status.model import Observation, WorkloadStatus
from .base import Kind, Manifest


@dataclass(frozen=True, kw_only=True)
class JobBackend(Kind):
    """Needs nothing on the cluster but Kubernetes."""

    group: str = "batch"
    version: str = "v1"
    kind: str = "Job"
    plural: str = "jobs"

    def build(self, spec: LaunchSpec) -> Manifest:
        """See `manifests.job.job`."""
        return job(spec)

    def pod_selector(self, name: str) -> str:
        """The label the Job controller puts on every pod (Kubernetes 1.27 and later)."""
        return f"{labels.JOB_NAME}={name}"

    def job_selector(self, name: str) -> str | None:
        """None: the workload is itself the Job."""
        return None

    def reduce(self, observation: Observation, previous: WorkloadStatus | None = None) -> WorkloadStatus:
        """See `status.job.job_status`."""
        return job_status(observation, previous)
