"""What a workload's state is made of: what was observed, and what it means.

The categories of `Failure` and `Waiting` are a stable, documented contract (docs/failures.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any

KubernetesObject = Mapping[str, Any]


class Phase(str, Enum):
    """Pending -> Queued <-> Starting -> Running -> Succeeded | Failed; Running -> Queued (preempted), Running -> Starting
    (restart, lost rank); any but the terminal ones -> Failed or Gone."""

    PENDING = "Pending"  # created, nothing known yet
    QUEUED = "Queued"  # suspended, or waiting for admission
    STARTING = "Starting"  # fewer than all ranks run
    RUNNING = "Running"  # all ranks run, or have run to success
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    GONE = "Gone"  # deleted by someone else

    @property
    def is_terminal(self) -> bool:
        return self in (Phase.SUCCEEDED, Phase.FAILED, Phase.GONE)

    def __str__(self) -> str:
        return self.value


class Category(str, Enum):
    """Why a workload failed, or what it waits for."""

    USER_ERROR = "user_error"
    OUT_OF_MEMORY = "out_of_memory"
    DEADLINE = "deadline"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    NODE_LOST = "node_lost"
    DELETED = "deleted"
    IMAGE_PULL = "image_pull"
    UNSCHEDULABLE = "unschedulable"
    QUOTA = "quota"
    REJECTED = "rejected"
    LAUNCH_TIMEOUT = "launch_timeout"
    GONE = "gone"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class PodRecord:
    """A pod as last seen by the watch. Kept after its deletion: it may be the only evidence. Made by `status.pods.remember`.

    All times are of the one clock of `Observation.at`, finer than the whole seconds in the objects. None where the record was
    not made by watching: the times in the object are then used.
    """

    object: KubernetesObject
    deleted: bool = False
    seen_at: datetime | None = None  # last
    first_seen_ended: datetime | None = None  # its containers, or the whole pod, had ended
    first_seen_deleting: datetime | None = None  # it had a deletionTimestamp, or was gone
    terminated_before_deletion: bool = False  # such an end is its own, not one of clean-up


@dataclass(frozen=True, kw_only=True)
class Observation:
    """All that is known of one workload at one moment. `workload` is None before it was seen or after a confirmed 404."""

    at: datetime  # aware, UTC
    workload: KubernetesObject | None = None
    was_seen: bool = False  # the workload had been seen before (a missing one is then Gone, not Pending)
    jobs: tuple[KubernetesObject, ...] = ()
    pods: tuple[PodRecord, ...] = ()
    events: tuple[KubernetesObject, ...] = ()
    admission: KubernetesObject | None = None  # Kueue's Workload
    queued_ahead: int | None = None  # how many are before it in its ClusterQueue, where Kueue's visibility API says so
    killed_by: str = ""  # who asked for the deletion with `kubernetes kill`
    wrapped: KubernetesObject | None = None  # what an AppWrapper made, as last seen, even if it is deleted by now
    wrapped_is_gone: bool = False  # it is


@dataclass(frozen=True, kw_only=True)
class RankStatus:
    """One rank of the current attempt. Times are aware, UTC."""

    role: str  # the replicated job's name: control, worker
    rank: int
    index: int = 0  # within its role: worker 0, 1, ...
    pod: str = ""
    pod_uid: str = ""
    node: str = ""
    phase: str = "Pending"  # the pod's phase; "Deleted" when it is gone without an end of its own
    ready: bool = False
    exit_code: int | None = None
    reason: str = ""  # the container's or the pod's, as Kubernetes writes it: OOMKilled, Error, Evicted, ImagePullBackOff
    message: str = ""
    restarts: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    is_collateral: bool = False  # ended because the workload was being cleaned up, not by itself


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Why a workload does not run yet. `summary` is one line for people; `is_hopeless` when waiting can't help; `is_ordinary` when
    ranks just take their time, and there is nothing to tell."""

    category: Category
    summary: str
    detail: str = ""
    since: datetime | None = None
    is_hopeless: bool = False
    is_ordinary: bool = False


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a workload failed: the first cause, never a victim. `rank` is None when no rank can be named."""

    category: Category
    summary: str  # one sentence: who, what, where
    resolution: str  # one sentence: what to do
    role: str = ""
    rank: int | None = None
    pod: str = ""
    node: str = ""
    exit_code: int | None = None
    reason: str = ""
    is_retryable: bool = True
    at: datetime | None = None
    last_lines: tuple[str, ...] = ()
    events: tuple[str, ...] = ()  # what else the cluster said of this rank's pod

    @property
    def is_vague(self) -> bool:
        """Evidence that comes a moment later (a pod's last state, an Event) may still say who it was, or why."""
        if self.rank is None or self.category is Category.UNKNOWN or self.reason == "DisruptionTarget":
            return True
        return self.exit_code is not None and not self.reason  # a Job's word, which came before the pod's own end


@dataclass(frozen=True, kw_only=True)
class Stalled:
    """No rank has got on since then. `summary` is one sentence, `lines` say where each of them stands."""

    since: datetime
    summary: str
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class WorkloadStatus:
    phase: Phase
    size: int  # world size
    ranks: tuple[RankStatus, ...] = ()
    waiting: Waiting | None = None
    failure: Failure | None = None
    stalled: Stalled | None = None  # while it runs
    restarts: int = 0
    reason: str = ""  # of the terminal condition, or of the state
    message: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)  # pods by phase

    @property
    def is_terminal(self) -> bool:
        return self.phase.is_terminal
