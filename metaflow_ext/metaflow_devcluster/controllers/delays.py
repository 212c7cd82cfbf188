"""How long the controllers take. Real ones batch, back off and poll; most users want none of that waiting.

`REAL` follows recordings of a real control plane: code that reads statuses meets the same gaps. `NONE` keeps the
same order of writes without the waiting, and shortens the back-offs that nobody wants to sit through.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, kw_only=True)
class Delays:
    """All in seconds."""

    pod_batch: float
    """From a change of a pod to its Job noticing it (the Job controller batches for one second)."""
    pod_backoff: float
    """First delay before a failed pod is replaced; doubles with every failure."""
    create_backoff: float
    """First delay before a refused pod is tried again; doubles."""
    container_start: float
    """From a pod's assignment to its containers running (pulling, sandbox)."""
    restart_backoff: float
    """First CrashLoopBackOff of a container; doubles."""
    pull_backoff: float
    """Between two tries of an image that cannot be pulled."""
    orphaned_pods: float
    """From the removal of a Node to the removal of its pods."""
    unscheduled_pods: float
    """From the deletion of a pod that never had a node, and is held by a finalizer, to its end as Failed."""
    lost_node: float
    """The longest that a pod stays on a lost node before its eviction, if it does not tolerate that for ever."""


REAL = Delays(
    pod_batch=1.0,
    pod_backoff=10.0,
    create_backoff=1.0,
    container_start=0.3,
    restart_backoff=10.0,
    pull_backoff=5.0,
    orphaned_pods=40.0,
    unscheduled_pods=20.0,
    lost_node=inf,
)
NONE = Delays(
    pod_batch=0.0,
    pod_backoff=0.2,
    create_backoff=0.25,
    container_start=0.0,
    restart_backoff=0.2,
    pull_backoff=2.0,
    orphaned_pods=2.0,
    unscheduled_pods=3.0,
    lost_node=5.0,
)
BY_NAME = {"real": REAL, "none": NONE}
