"""Who is to start all ranks together or none: what was asked for, or with `auto` what the cluster has. Found by asking it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..backends.base import Backend
from ..cluster.protocol import PODS, ClusterClient
from ..errors import ClusterError, InvalidSpec
from ..runtime.pod_groups import is_served, require_served
from ..runtime.resources import resource_of
from ..spec.gang import AUTO, COSCHEDULING, KUEUE, NATIVE, NONE, POD_GROUPS
from ..spec.labels import KUEUE_QUEUE
from ..spec.launch import LaunchSpec
from .dry_run import parts, refusal


def settled(client: ClusterClient, spec: LaunchSpec, backend: Backend) -> tuple[str | None, str]:
    """`spec.gang` as it can be had here, never `auto`, and why. InvalidSpec where what is asked for can't be had.

    A workload of one rank is no gang, and needs nobody.
    """
    if spec.gang is None or spec.world_size == 1:
        return None, ""
    if spec.gang == AUTO:
        return _best(client, spec, backend)
    if spec.gang in POD_GROUPS:
        require_served(client, spec.gang)
    if spec.gang == NATIVE and (reason := _refusal_of_native(client, spec, backend)):
        raise InvalidSpec(f"gang is native, but {reason}")
    return spec.gang, ""


def _best(client: ClusterClient, spec: LaunchSpec, backend: Backend) -> tuple[str, str]:
    queue = spec.labels.get(KUEUE_QUEUE)
    if queue:
        return KUEUE, f"Kueue admits all ranks of queue {queue} together"
    found = list(_against(client, spec, backend))
    for gang, reason in found:
        if not reason:
            return gang, "the scheduler starts all ranks of its PodGroup together or none"
    return NONE, "; ".join(reason for _, reason in found)


def _against(client: ClusterClient, spec: LaunchSpec, backend: Backend) -> Iterator[tuple[str, str]]:
    """What could do it, and what speaks against it, "" for nothing."""
    schedulers = {group.placement.scheduler for group in spec.groups} - {None}
    if not schedulers:
        yield COSCHEDULING, "no scheduler is named that could have the coscheduling plugin"
    else:
        yield COSCHEDULING, "" if is_served(client, COSCHEDULING) else "no PodGroups of the coscheduling plugin are served"
    if not is_served(client, NATIVE):
        yield NATIVE, "Kubernetes' own PodGroups are not served"
    else:
        yield NATIVE, _refusal_of_native(client, spec, backend)


def _refusal_of_native(client: ClusterClient, spec: LaunchSpec, backend: Backend) -> str:
    """Why pods of such a workload can't name their PodGroup, "" where they can: asked by strict dry runs."""
    made = backend.build(replace(spec, gang=NATIVE))
    for what, resource, manifest in [(backend.kind, resource_of(backend), made), *parts(made)]:
        if resource is not PODS:
            error = refusal(client, resource, manifest)
            if isinstance(error, ClusterError) and "schedulingGroup" in str(error):
                return f"{what} here has no place for a pod's PodGroup"
    return ""
