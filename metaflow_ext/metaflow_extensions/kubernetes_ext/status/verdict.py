"""What all kinds of workload have in common: from ranks to a phase, and what a new observation may change in an old verdict.

A terminal phase is final. One that is not follows from the pods; where there are none to see, from the phase before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import stalled
from .describe import ranks_of
from .diagnosis import Case, diagnose, first_incident, of_incident
from .ends import has_failed, is_own_end
from .incidents import Harm
from .job_evidence import jobs_of
from .layout import Layout
from .model import Category, Failure, KubernetesObject, Observation, Phase, RankStatus, WorkloadStatus
from .pods import current_records, rank_statuses
from .reading import Condition, conditions, dig, false_condition, is_terminating
from .waiting import is_running, waiting_for


@dataclass(frozen=True, kw_only=True)
class View:
    """An observation, read: who has which rank in the current attempt."""

    observation: Observation
    layout: Layout
    case: Case
    ranks: tuple[RankStatus, ...]
    restarts: int = 0
    previous: WorkloadStatus | None = None


def view_of(observation: Observation, layout: Layout, attempt: int, restarts: int, previous: WorkloadStatus | None) -> View:
    resumed = false_condition(observation.workload, "Suspended")
    chosen = current_records(observation.pods, layout, attempt, resumed.since if resumed else None)
    jobs = tuple(jobs_of(observation, attempt))
    case = Case(observation=observation, layout=layout, chosen=chosen, jobs=jobs, restarts=restarts)
    ranks = rank_statuses(chosen, layout)
    return View(observation=observation, layout=layout, case=case, ranks=ranks, restarts=restarts, previous=previous)


def have_all_succeeded(view: View) -> bool:
    """By themselves: ranks that end with 0 because a suspension or a deletion told them to are no success."""
    has_all = 0 < view.layout.size == len(view.ranks) and all(rank.phase == "Succeeded" for rank in view.ranks)
    return has_all and all(is_own_end(record) for record in view.case.chosen.values())


def has_own_failure(view: View) -> bool:
    """Whether a rank failed by itself, not by being taken away."""
    return any(has_failed(record.object) and is_own_end(record) for record in view.case.chosen.values())


def is_suspended(view: View, workload: KubernetesObject) -> bool:
    """spec and condition disagree for moments; a rank that runs while spec does not suspend settles it."""
    wanted = dig(workload, "spec", "suspend") is True
    return wanted or ("Suspended" in conditions(workload) and not any(rank.phase == "Running" for rank in view.ranks))


def by_counters(view: View, status: WorkloadStatus, *, active: int | None, is_ready: bool) -> WorkloadStatus:
    """Where pods can't be seen (no permission), counters at least tell that they run. `ready` falls back when they end."""
    if any(rank.pod for rank in view.ranks) or status.phase in (Phase.QUEUED, Phase.RUNNING) or not active or active < 0:
        return status
    return replace(status, phase=Phase.RUNNING if is_ready else Phase.STARTING)


def succeeded(view: View, condition: Condition | None = None) -> WorkloadStatus:
    return _status(view, Phase.SUCCEEDED, condition)


def failed(view: View, condition: Condition | None = None) -> WorkloadStatus:
    return replace(_status(view, Phase.FAILED, condition), failure=diagnose(view.case, condition))


def unfinished(view: View, *, is_suspended: bool, has_status: bool) -> WorkloadStatus:
    phase = _phase(view, is_suspended, has_status)
    waiting = waiting_for(view.observation, view.layout, view.case.chosen, view.ranks, view.case.jobs, phase)
    return replace(_status(view, phase), waiting=waiting, stalled=stalled.of_workload(view.observation.workload))


def absent(view: View, kind: str) -> WorkloadStatus:
    """No object to read: it is gone if it was ever there, unless the pods of all ranks are known to have succeeded before."""
    before = view.previous
    if not view.observation.was_seen:
        return before or _status(view, Phase.PENDING)
    size = max(view.layout.size, before.size if before else 0)
    if before and size == view.layout.size and have_all_succeeded(view):
        return succeeded(view)  # and then went, by its TTL or by hand
    ranks = view.ranks or (before.ranks if before else ())
    status = gone(replace(_status(view, Phase.GONE), size=size, ranks=ranks), kind, view.observation)
    return replace(status, failure=_after_harm(view, kind) or status.failure)


def final(status: WorkloadStatus, previous: WorkloadStatus | None) -> WorkloadStatus:
    """A verdict stays; later evidence may only make its cause more precise."""
    if previous is None or not previous.is_terminal:
        return status
    if status.phase is not previous.phase:
        return previous
    failure = _more_precise(status.failure, previous.failure)
    return replace(status, failure=failure, ranks=status.ranks or previous.ranks, size=status.size or previous.size)


def with_end_of_culprit(status: WorkloadStatus) -> WorkloadStatus:
    """With the exit code of the rank that failed first, where its end came soon after the verdict."""
    failure = status.failure
    if failure is None or failure.rank is None or failure.exit_code is not None:
        return status
    code = next((rank.exit_code for rank in status.ranks if (rank.rank, rank.pod) == (failure.rank, failure.pod)), None)
    return status if code is None else replace(status, failure=replace(failure, exit_code=code))


def _more_precise(new: Failure | None, old: Failure | None) -> Failure | None:
    if new is None or old is None:
        return new or old
    names_a_rank = old.rank is None and new.rank is not None
    better = new if names_a_rank or (old.is_vague and not new.is_vague) else old
    # Events come last of all, and tell of the rank that is named.
    return replace(better, events=new.events) if new.events and new.pod == better.pod else better


def _status(view: View, phase: Phase, condition: Condition | None = None) -> WorkloadStatus:
    return WorkloadStatus(
        phase=phase,
        size=view.layout.size,
        ranks=view.ranks,
        restarts=view.restarts,
        reason=condition.reason if condition else "",
        message=condition.message if condition else "",
        counts=dict(Counter(rank.phase for rank in view.ranks if rank.pod)),
    )


def _phase(view: View, is_suspended: bool, has_status: bool) -> Phase:
    before = view.previous.phase if view.previous and not view.previous.is_terminal else None
    if is_terminating(view.observation.workload) and before:
        return before
    if is_suspended:
        return Phase.QUEUED
    if not any(rank.pod for rank in view.ranks):
        return _phase_without_pods(view, before, has_status)
    if before is Phase.RUNNING and (_is_failing(view.ranks) or "SuccessCriteriaMet" in conditions(view.observation.workload)):
        return before  # its peers are being taken away, nothing is being started
    return Phase.RUNNING if _do_all_run(view.ranks, view.layout) else Phase.STARTING


def _is_failing(ranks: Sequence[RankStatus]) -> bool:
    return any(rank.phase == "Failed" and not rank.is_collateral for rank in ranks) and all(rank.pod for rank in ranks)


def _phase_without_pods(view: View, before: Phase | None, has_status: bool) -> Phase:
    """Nothing means nothing: counters are zero in every run, so only a phase that is known to be over changes."""
    if before is Phase.QUEUED and has_status:
        return Phase.STARTING
    if view.previous and view.restarts > view.previous.restarts:
        return Phase.STARTING
    return before or Phase.PENDING


def _do_all_run(ranks: Sequence[RankStatus], layout: Layout) -> bool:
    """All, or as many of those that are not over as the Job runs at once."""
    if len(ranks) >= layout.size and all(is_running(rank) for rank in ranks):
        return True
    to_do = [rank for rank in ranks if rank.phase != "Succeeded"]
    return layout.at_once < layout.size and sum(map(is_running, to_do)) >= min(layout.at_once, len(to_do)) > 0


def gone(before: WorkloadStatus, kind: str, observation: Observation) -> WorkloadStatus:
    """The workload is not there any more, and nothing had failed in it before."""
    killer = observation.killed_by
    how = f"was killed by {killer} with `kubernetes kill`" if killer else "was deleted by someone else"
    failure = Failure(
        category=Category.GONE,
        summary=f"The {kind} {how}" + (f", with {ranks_of(before.size)}." if before.size else "."),
        resolution="Run it again when it is wanted again."
        if killer
        else "Find out who deletes workloads here (kubectl delete, a clean-up job), and run it again.",
        reason="Killed" if killer else "Gone",
        at=observation.at,
    )
    return replace(before, phase=Phase.GONE, reason="Gone", message="", waiting=None, failure=failure)


def _after_harm(view: View, kind: str) -> Failure | None:
    """What failed before the deletion is told, since it may be why."""
    incident = first_incident(view.case)
    if incident is None or incident.harm is Harm.DELETION:
        return None
    own = of_incident(view.case, incident)
    return replace(own, summary=f"{own.summary} The {kind} was deleted afterwards.")
