"""Sentences about ranks, the same everywhere: "Worker 1 (rank 2, pod js-1-worker-0-1-x on node-7)"."""

from __future__ import annotations

from collections.abc import Iterable

from ..spec import labels
from ..spec.launch import CONTROL
from .layout import TASK
from .model import KubernetesObject, RankStatus
from .reading import text

MARGIN = "|   "  # of lines that belong to the one before: Metaflow strips blanks at a line's start


def who(rank: RankStatus, size: int) -> str:
    """The subject of a sentence. Control has no number, a plain task neither."""
    facts = [] if size == 1 and rank.role == TASK else [f"rank {rank.rank}"]
    if rank.pod:
        facts.append(f"pod {rank.pod}" + (f" on {rank.node}" if rank.node else ""))
    return f"{title(rank, size)} ({', '.join(facts)})" if facts else title(rank, size)


def title(rank: RankStatus, size: int) -> str:
    """ "Worker 1", "Control", "The task"."""
    if rank.role == CONTROL and rank.index == 0:
        return "Control"
    if rank.role == TASK and size == 1:
        return "The task"
    role = rank.role[:1].upper() + rank.role[1:] or "Rank"
    return f"{role} {rank.index}"


def ranks_of(size: int) -> str:
    """ "the task" for one rank, else "all 4 ranks"."""
    return "the task" if size == 1 else f"all {size} ranks"


def names(ranks: Iterable[RankStatus], size: int, most: int = 3) -> str:
    """ "worker 0, worker 2 and 5 more"."""
    titles = [title(rank, size).lower() for rank in ranks]
    shown = ", ".join(titles[:most])
    return f"{shown} and {len(titles) - most} more" if len(titles) > most else shown


def step_of(pod: KubernetesObject) -> str:
    """ "step train" where the pod says which, else "this step"."""
    step = text(pod, "metadata", "annotations", labels.STEP) or text(pod, "metadata", "labels", labels.STEP)
    return f"step {step}" if step else "this step"


def sentence(words: str) -> str:
    """One closed sentence on one line."""
    flat = " ".join(words.split())
    return flat if flat.endswith((".", "!", "?")) else f"{flat}."


def duration(seconds: float) -> str:
    """ "45 s", "15 min", "2 h", "2 h 5 min"."""
    if seconds < 60:
        return f"{int(seconds)} s"
    hours, minutes = divmod(int(seconds // 60), 60)
    return " ".join(part for part in (f"{hours} h" if hours else "", f"{minutes} min" if minutes or not hours else "") if part)
