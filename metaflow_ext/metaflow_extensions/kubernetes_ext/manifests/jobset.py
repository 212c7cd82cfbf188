"""JobSets: one replicated Job a group, each an Indexed Job whose completion index tells its ranks apart.

A Job per worker would cost the API server 2 to 12 times as many writes and give nothing that a watch of the pods doesn't.
"""

from __future__ import annotations

from ..spec.launch import Group, LaunchSpec
from .job import job_spec
from .manifest import Manifest, present
from .pod import metadata

API_VERSION = "jobset.x-k8s.io/v1alpha2"


def jobset(spec: LaunchSpec, api_version: str = API_VERSION) -> Manifest:
    """The workload as a JobSet. Source: https://jobset.sigs.k8s.io/docs/reference/jobset.v1alpha2/.

    Left out on purpose: startupPolicy (InOrder deadlocks with gang schedulers), successPolicy (the default waits for all
    ranks; "control only" would kill workers that still upload), suspend (Kueue's).
    """
    body: Manifest = {
        # A restart is a new JobSet: JobSet's own lets two attempts overlap under the same host names.
        "failurePolicy": {"maxRestarts": 0},
        # Ranks find each other by name before they are ready.
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "replicatedJobs": [_replicated_job(spec, group) for group in spec.groups],
    }
    if spec.ttl_seconds is not None:
        body["ttlSecondsAfterFinished"] = spec.ttl_seconds
    return {
        "apiVersion": api_version,
        "kind": "JobSet",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **metadata(spec)},
        "spec": body,
    }


def _replicated_job(spec: LaunchSpec, group: Group) -> Manifest:
    template = {**present(metadata=metadata(spec, group)), "spec": job_spec(spec, group, is_indexed=True)}
    return {"name": group.name, "replicas": 1, "template": template}
