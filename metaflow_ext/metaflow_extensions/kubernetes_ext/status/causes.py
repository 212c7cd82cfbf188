"""What an end means, in the order of what can be trusted: OOMKilled, the pod's reason, DisruptionTarget, the exit code last.

137 alone is not out-of-memory, 143 alone not a deletion.
"""

from __future__ import annotations

from dataclasses import dataclass

from .describe import step_of
from .ends import SIGKILL, SIGTERM, End, disruption
from .model import Category, KubernetesObject
from .reading import Condition, integer, is_terminating, mappings, text

RUN_AGAIN = "Nothing is wrong with the code: run it again."


@dataclass(frozen=True, kw_only=True)
class Cause:
    """`what` follows the subject of a sentence: "ran out of memory (OOMKilled, exit code 137)"."""

    category: Category
    what: str
    resolution: str
    reason: str = ""


def cause_of(pod: KubernetesObject, end: End | None) -> Cause:
    """Why this pod came to its end. Without `end` it never said that it ended."""
    end = end or End()
    disrupted = disruption(pod)
    if end.reason == "OOMKilled":
        return _out_of_memory(pod, end)
    if reason := text(pod, "status", "reason"):
        return _pod_reason(pod, end, reason)
    if disrupted:
        return _disrupted(pod, end, disrupted)
    return cause_of_exit(end, step_of(pod))


def deleted_by_hand() -> Cause:
    return Cause(
        category=Category.DELETED,
        what="was deleted from outside, while it ran",
        resolution="Somebody or something deleted the pod (kubectl delete, a clean-up job): run it again.",
        reason="Deleted",
    )


def _out_of_memory(pod: KubernetesObject, end: End) -> Cause:
    limit = next(
        (
            text(entry, "resources", "limits", "memory")
            for entry in mappings(pod, "spec", "containers") + mappings(pod, "spec", "initContainers")
            if text(entry, "name") == end.container
        ),
        "",
    )
    return Cause(
        category=Category.OUT_OF_MEMORY,
        what=f"ran out of memory (OOMKilled{_code(end)})",
        resolution=f"Raise @resources(memory=...) for {step_of(pod)}" + (f"; its limit was {limit}." if limit else "."),
        reason="OOMKilled",
    )


def _pod_reason(pod: KubernetesObject, end: End, reason: str) -> Cause:
    message = text(pod, "status", "message")
    if reason == "DeadlineExceeded":
        limit = integer(pod, "spec", "activeDeadlineSeconds")
        after = f"timed out after {limit} s" if limit else "timed out"
        return Cause(
            category=Category.DEADLINE,
            what=f"{after} (DeadlineExceeded{_code(end)})",
            resolution=f"Raise the time limit of {step_of(pod)} (@timeout), or let it do less.",
            reason=reason,
        )
    category, words, resolution = _POD_REASONS.get(
        reason, (Category.UNKNOWN, f"failed ({reason}{_code(end)})", "The message is all that Kubernetes says about it.")
    )
    if category is Category.EVICTED and "memory" in message:
        resolution = f"Request more memory with @resources(memory=...) for {step_of(pod)}, so that its node has room for it."
    if category is Category.EVICTED and "ephemeral-storage" in message:
        resolution = f"Raise @kubernetes(disk=...) for {step_of(pod)}, or write less to the container's disk."
    return Cause(category=category, what=words + (f": {message}" if message else ""), resolution=resolution, reason=reason)


_POD_REASONS = {
    "Evicted": (Category.EVICTED, "was evicted by its node", RUN_AGAIN),
    "Preempting": (Category.PREEMPTED, "had to make room for a pod of higher priority", RUN_AGAIN),
    "Preempted": (Category.PREEMPTED, "had to make room for a pod of higher priority", RUN_AGAIN),
    "NodeShutdown": (Category.EVICTED, "ended because its node was shut down", RUN_AGAIN),
    "Shutdown": (Category.EVICTED, "ended because its node was shut down", RUN_AGAIN),
    "Terminated": (Category.EVICTED, "ended because its node was shut down", RUN_AGAIN),
    "NodeLost": (Category.NODE_LOST, "was lost with its node", RUN_AGAIN),
} | {
    reason: (Category.UNSCHEDULABLE, f"was refused by its node ({reason})", "The node had no room left for it: run it again.")
    for reason in ("OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "UnexpectedAdmissionError")
}


def _disrupted(pod: KubernetesObject, end: End, disrupted: Condition) -> Cause:
    category, words = _DISRUPTIONS.get(
        disrupted.reason, (Category.EVICTED, f"was disrupted by Kubernetes ({disrupted.reason or 'DisruptionTarget'})")
    )
    if disrupted.reason == "DeletionByTaintManager" and end.exit_code is not None:
        category, words = Category.EVICTED, "was evicted from its node, which was tainted"
    silent = is_terminating(pod) and end.exit_code is None
    detail = f": {disrupted.message}" if disrupted.message and not silent else ""
    return Cause(category=category, what=words + detail, resolution=RUN_AGAIN, reason=disrupted.reason or "DisruptionTarget")


_DISRUPTIONS = {
    "PreemptionByScheduler": (Category.PREEMPTED, "was preempted by a pod of higher priority"),
    "DeletionByTaintManager": (Category.NODE_LOST, "was lost with its node, which no longer answers"),
    "DeletionByPodGC": (Category.NODE_LOST, "was lost with its node, which is gone"),
    "EvictionByEvictionAPI": (Category.EVICTED, "was evicted from its node (a drain, or an autoscaler)"),
    "TerminationByKubelet": (Category.EVICTED, "was ended by its node"),
}


def cause_of_exit(end: End, step: str = "this step") -> Cause:
    """From the exit code and the container's reason alone."""
    category, words, resolution = _by_reason(end) or _by_code(end) or _by_own_code(end)
    if end.is_init:
        words = f"{words} in its init container {end.container}"
    if end.message and end.reason in _NEVER_RAN:
        words = f"{words}: {end.message}"  # the runtime's; that of a program is the end of its log (FallbackToLogsOnError)
    return Cause(category=category, what=words, resolution=resolution.format(step=step), reason=end.reason)


_Words = tuple[Category, str, str]


_NEVER_RAN = ("StartError", "ContainerCannotRun", "RunContainerError")


def log_tail(end: End | None) -> tuple[str, ...]:
    """The last lines of the program's log, where the container's status carries them."""
    return () if end is None or end.reason in _NEVER_RAN else tuple(end.message.splitlines())


def _by_reason(end: End) -> _Words | None:
    if end.reason in _NEVER_RAN:
        return (
            Category.USER_ERROR,
            f"could not start its command ({end.reason}{_code(end)})",
            "Check the command and the image of {step}.",
        )
    if end.reason == "ContainerStatusUnknown":
        return Category.NODE_LOST, f"was lost by its node (ContainerStatusUnknown{_code(end)})", RUN_AGAIN
    return None


def _by_code(end: End) -> _Words | None:
    found = _CODES.get(end.exit_code or 0)
    return (found[0], found[1].format(code=end.exit_code), found[2]) if found else None


_CORRECT = "Correct {step}, and go on with `resume`."
_CODES: dict[int, _Words] = {
    126: (
        Category.USER_ERROR,
        "could not run its command: no permission (exit code {code})",
        "Check the command and the image of {step}.",
    ),
    127: (Category.USER_ERROR, "could not find its command (exit code {code})", "Check the command and the image of {step}."),
    130: (Category.USER_ERROR, "was interrupted (SIGINT, exit code {code})", _CORRECT),
    132: (
        Category.USER_ERROR,
        "used an instruction that its processor does not have (SIGILL, exit code {code})",
        "Use an image built for the nodes' processors, or choose other nodes with @kubernetes(node_selector=...).",
    ),
    134: (Category.USER_ERROR, "aborted itself (SIGABRT, exit code {code})", _CORRECT),
    135: (
        Category.USER_ERROR,
        "touched memory that could not be had (SIGBUS, exit code {code})",
        "Often /dev/shm is full: raise @kubernetes(shared_memory=...) for {step}.",
    ),
    136: (Category.USER_ERROR, "made an arithmetic error (SIGFPE, exit code {code})", _CORRECT),
    139: (Category.USER_ERROR, "crashed with a segmentation fault (SIGSEGV, exit code {code})", _CORRECT),
    SIGKILL: (
        Category.UNKNOWN,
        "was killed (SIGKILL, exit code {code}), and Kubernetes does not say by whom",
        "If memory was nearly full, raise @resources(memory=...) for {step}; else look at the node's own log.",
    ),
    SIGTERM: (
        Category.USER_ERROR,
        "ended on a SIGTERM (exit code {code}), though nobody had deleted its pod",
        "Something inside the container sent the signal: look for what does.",
    ),
}


def _by_own_code(end: End) -> _Words:
    if end.exit_code is None:
        return Category.UNKNOWN, "ended, and nothing says why", "Look at the events of its pod and node."
    return Category.USER_ERROR, f"failed with exit code {end.exit_code}", _CORRECT


def _code(end: End) -> str:
    return "" if end.exit_code is None else f", exit code {end.exit_code}"
