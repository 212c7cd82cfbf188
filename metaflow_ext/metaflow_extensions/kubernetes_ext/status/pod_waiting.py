"""Why pods that exist do not run: no node for them, no image, no configuration. One sentence for all ranks with the same trouble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from .describe import duration, sentence, who
from .ends import restart_count, waiting_state
from .job_evidence import event_at, is_about
from .model import Category, KubernetesObject, Observation, PodRecord, RankStatus, Waiting
from .reading import created_at, false_condition, integer, mappings, moment, text
from .refusals import newest

_IMAGE = (
    "ErrImagePull",
    "ImagePullBackOff",
    "ErrImageNeverPull",
    "InvalidImageName",
    "ImageInspectError",
    "RegistryUnavailable",
)
_IMAGE_NEVER = ("ErrImageNeverPull", "InvalidImageName")
_CONFIG = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
# A Secret or ConfigMap may be created a moment after the pod that wants it.
_CONFIG_PATIENCE = timedelta(seconds=60)
_MOUNT = ("FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox")


@dataclass(frozen=True, kw_only=True)
class _Stuck:
    rank: RankStatus
    pod: KubernetesObject


def pod_waiting(observation: Observation, ranks: Sequence[RankStatus], chosen: Mapping[int, PodRecord]) -> Waiting | None:
    """The worst trouble first: what can't heal, images, configuration, crashes, nodes, volumes."""
    stuck = [
        _Stuck(rank=rank, pod=chosen[rank.rank].object)
        for rank in ranks
        if rank.rank in chosen and rank.phase not in ("Succeeded", "Failed", "Deleted") and not rank.ready
    ]
    for find in (_image, _configuration, _crashing, _unschedulable, _volume, _pulling):
        if found := find(stuck, observation, len(ranks)):
            return found
    return None


def _image(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    hit = _with_reason(stuck, _IMAGE_NEVER) or _with_reason(stuck, _IMAGE)
    if hit is None:
        return None
    reason, message, image = waiting_state(hit.pod)
    detail = _event_text(observation, hit.pod, "Failed", "Failed to pull image") or message
    is_hopeless = reason in _IMAGE_NEVER
    words = {"InvalidImageName": "is not a valid image name", "ErrImageNeverPull": "is not on its node, and may not be pulled"}
    return Waiting(
        category=Category.IMAGE_PULL,
        summary=sentence(
            f"{who(hit.rank, size)} can't get its image {image}" + (f": it {words[reason]}" if reason in words else "")
        ),
        detail=detail,
        since=_since(hit.pod),
        is_hopeless=is_hopeless,
    )


def _configuration(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    hit = _with_reason(stuck, _CONFIG)
    if hit is None:
        return None
    reason, message, _ = waiting_state(hit.pod)
    since = _since(hit.pod)
    return Waiting(
        category=Category.REJECTED,
        summary=sentence(f"{who(hit.rank, size)} can't create its container ({reason})" + (f": {message}" if message else "")),
        detail="Create what the message names, or correct the name, and run it again.",
        since=since,
        is_hopeless=since is not None and observation.at - since > _CONFIG_PATIENCE,
    )


def _crashing(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    hit = _with_reason(stuck, ("CrashLoopBackOff",))
    if hit is None:
        return None
    ends = [integer(entry, "lastState", "terminated", "exitCode") for entry in mappings(hit.pod, "status", "containerStatuses")]
    code = next((f" with exit code {end}" for end in ends if end is not None), "")
    return Waiting(
        category=Category.USER_ERROR,
        summary=f"{who(hit.rank, size)} ends{code} again and again.",
        detail=f"Started {restart_count(hit.pod) + 1} times.",
        since=_since(hit.pod),
    )


def _unschedulable(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    hits = [(one, found) for one in stuck if (found := false_condition(one.pod, "PodScheduled"))]
    if not hits:
        return None
    _, condition = hits[0]
    reason, _, rest = condition.message.partition(" preemption: ")
    who_waits = "The task has" if size == 1 else f"{len(hits)} of {size} ranks have"
    is_gated = condition.reason == "SchedulingGated"
    words = f"{who_waits} no node: {reason or condition.reason}"
    return Waiting(
        category=Category.QUOTA if is_gated else Category.UNSCHEDULABLE,
        summary=sentence(f"{who_waits} to wait behind a scheduling gate" if is_gated else words),
        detail=_in_words(reason) or rest,
        since=min((found.since for _, found in hits if found.since), default=None),
    )


def _volume(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    """Only for pods whose containers are still being created: such Events stay after the trouble is over."""
    for one in stuck:
        if waiting_state(one.pod)[0] not in ("ContainerCreating", "PodInitializing"):
            continue
        for reason in _MOUNT:
            if message := _event_text(observation, one.pod, reason):
                what = "network" if reason == "FailedCreatePodSandBox" else "volumes"
                return Waiting(
                    category=Category.REJECTED,
                    summary=sentence(f"{who(one.rank, size)} waits for its {what}: {message}"),
                    since=_since(one.pod),
                )
    return None


def _pulling(stuck: Sequence[_Stuck], observation: Observation, size: int) -> Waiting | None:
    """The image is on its way, which only an Event says; large ones take minutes on a node that has not had them yet."""
    pulled = [event for event in observation.events if text(event, "reason") == "Pulled"]
    for one in stuck:
        if waiting_state(one.pod)[0] not in ("ContainerCreating", "PodInitializing"):
            continue
        for event in newest(observation.events, "Pulling"):
            since, image = event_at(event), text(event, "message").partition('"')[2].partition('"')[0]
            if since is None or not image or not is_about(event, one.pod):
                continue
            if any(is_about(other, one.pod) and image in text(other, "message") for other in pulled):
                continue
            seconds = max(0.0, (observation.at - since).total_seconds())
            words = f"{who(one.rank, size)} has been pulling its image {image} for {duration(seconds)}."
            return Waiting(category=Category.UNKNOWN, summary=words, since=since)
    return None


_ADVICE = {
    "Insufficient cpu": "No node has so many free CPUs: ask for fewer with @resources(cpu=...), or wait for some to end.",
    "Insufficient memory": "No node has so much free memory: ask for less with @resources(memory=...), or wait for some to be freed.",
    "/gpu": "No node has so many free GPUs: ask for fewer with @resources(gpu=...), or wait for some to be freed.",
    "untolerated taint": "Nodes have taints that it does not tolerate: see @kubernetes(tolerations=...).",
    "node affinity/selector": "No node has the labels that it asks for: see @kubernetes(node_selector=...).",
    "persistent volume": "A volume that it wants is not there, or is on another node: see @kubernetes(persistent_volume_claims=...).",
}


def _in_words(message: str) -> str:
    return " ".join(advice for words, advice in _ADVICE.items() if words in message)


def _with_reason(stuck: Iterable[_Stuck], reasons: Sequence[str]) -> _Stuck | None:
    return next((one for one in stuck if waiting_state(one.pod)[0] in reasons), None)


def _event_text(observation: Observation, pod: KubernetesObject, reason: str, start: str = "") -> str:
    for event in newest(observation.events, reason):
        if text(event, "message").startswith(start) and is_about(event, pod):
            return text(event, "message")
    return ""


def _since(pod: KubernetesObject) -> datetime | None:
    return moment(pod, "status", "startTime") or created_at(pod)
