"""Why a workload does not run (yet), the most telling reason first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .describe import names
from .layout import Layout
from .model import Category, KubernetesObject, Observation, Phase, PodRecord, RankStatus, Waiting
from .pod_waiting import pod_waiting
from .queueing import queue_waiting
from .reading import created_at, deletion_requested_at, is_terminating, text
from .refusals import is_untouched, job_refusal, pod_refusal


def waiting_for(
    observation: Observation,
    layout: Layout,
    chosen: Mapping[int, PodRecord],
    ranks: Sequence[RankStatus],
    jobs: Iterable[KubernetesObject],
    phase: Phase,
) -> Waiting | None:
    """None when nothing is waited for."""
    if is_terminating(observation.workload):
        return _being_deleted(observation.workload)
    if phase is Phase.QUEUED:
        return queue_waiting(observation)
    if phase is Phase.RUNNING or phase.is_terminal:
        return None
    missing = sum(1 for rank in ranks if not rank.pod)
    return (
        job_refusal(observation)
        or pod_refusal(observation, jobs, missing)
        or pod_waiting(observation, ranks, chosen)
        or _for_ranks(ranks, layout.size)
        or _for_controller(observation)
    )


def is_running(rank: RankStatus) -> bool:
    """It runs, or has run to its own end: it does not keep the others waiting."""
    return rank.phase in ("Running", "Succeeded") or (rank.phase == "Failed" and not rank.is_collateral)


def _being_deleted(workload: KubernetesObject | None) -> Waiting:
    return Waiting(
        category=Category.GONE,
        summary=f"{text(workload, 'kind') or 'The workload'} is being deleted.",
        since=deletion_requested_at(workload or {}),
    )


def _for_ranks(ranks: Sequence[RankStatus], size: int) -> Waiting | None:
    if not any(rank.pod for rank in ranks):
        return None
    late = [rank for rank in ranks if not is_running(rank)]
    if not late:
        return None
    running = len(ranks) - len(late)
    summary = (
        f"{running} of {len(ranks)} ranks run; waits for {names(late, size)}."
        if size > 1
        else "Its container is being started."
    )
    return Waiting(category=Category.UNKNOWN, summary=summary, is_ordinary=True)


def _for_controller(observation: Observation) -> Waiting | None:
    if not is_untouched(observation):
        return None
    kind = text(observation.workload, "kind") or "The workload"
    return Waiting(
        category=Category.UNKNOWN,
        summary=f"{kind} has no status yet: no controller seems to look at it.",
        detail="Is the controller of this kind running on the cluster?",
        since=created_at(observation.workload),
    )
