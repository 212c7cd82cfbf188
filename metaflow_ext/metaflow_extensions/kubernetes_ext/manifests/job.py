"""Jobs (batch/v1): of a plain step, and inside of a JobSet."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidSpec
from ..spec.launch import ContainerSpec, Group, LaunchSpec
from .manifest import Manifest
from .pod import metadata, pod_template


def job(spec: LaunchSpec) -> Manifest:
    """The workload of one group as a Job; Indexed where it has more than one rank. InvalidSpec with more than one group."""
    if len(spec.groups) != 1:
        raise InvalidSpec(f"Workload {spec.name} has {len(spec.groups)} groups; a Job runs one, a JobSet runs more.")
    group = spec.groups[0]
    body = job_spec(spec, group, is_indexed=group.replicas > 1)
    if spec.ttl_seconds is not None:
        body["ttlSecondsAfterFinished"] = spec.ttl_seconds
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": spec.name, "namespace": spec.namespace, **metadata(spec)},
        "spec": body,
    }


def job_spec(spec: LaunchSpec, group: Group, *, is_indexed: bool) -> Manifest:
    """A batch/v1 JobSpec that runs every rank of `group` once, all at the same time.

    No time to live: JobSet runs a child Job again that vanishes while the others still run.
    """
    return {
        "completions": group.replicas,
        "parallelism": group.replicas,
        **({"completionMode": "Indexed"} if is_indexed else {}),
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": _failure_rules(group.container)},
        "template": pod_template(spec, group),
    }


def _failure_rules(container: ContainerSpec) -> list[dict[str, Any]]:
    """FailJob puts the pod's name and its exit code into the Job's condition and an Event, which outlive the pod.

    The index of the rule that matched tells a disruption (0) from an error of the program (1). 137 and 143 are also how pods
    end that a suspension (Kueue's preemption) deletes, and the rule would fail the Job for those: docs/decisions/012.
    """
    return [
        {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": container.name, "operator": "NotIn", "values": [0, 137, 143]}},
    ]
