"""The status of a pod as a kubelet writes it, from the states of its containers."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..controllers.objects import format_time, is_true

Object = dict[str, Any]
_OURS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass
class ContainerState:
    """What is known of one container; `state` and `last_state` are as in containerStatuses."""

    name: str
    image: str
    state: Object = field(default_factory=lambda: {"waiting": {"reason": "ContainerCreating"}})
    last_state: Object = field(default_factory=dict)
    restart_count: int = 0
    container_id: str = ""

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        terminated = self.state.get("terminated")
        return None if terminated is None else int(terminated["exitCode"])

    def status(self, *, is_init: bool = False) -> Object:
        ready = self.exit_code == 0 if is_init else self.is_running
        found: Object = {
            "name": self.name,
            "state": self.state,
            "lastState": self.last_state,
            "ready": ready,
            "restartCount": self.restart_count,
            "image": self.image,
            "imageID": f"devcluster://{self.image}" if self.container_id else "",
            "started": self.is_running,
        }
        if self.container_id:
            found["containerID"] = self.container_id
        return found


@dataclass(frozen=True, kw_only=True)
class PodFacts:
    """What the node knows of a pod besides its containers; `is_stopped` when nothing will be restarted any more."""

    pod_ip: str
    host_ip: str
    start_time: str
    is_stopped: bool = False
    is_evicted: bool = False
    reason: str = ""
    message: str = ""


def pod_phase(policy: str, inits: Sequence[ContainerState], containers: Sequence[ContainerState], *, is_stopped: bool) -> str:
    """Pending, Running, Succeeded or Failed."""
    codes = [container.exit_code for container in containers]
    if is_stopped and not any(container.is_running for container in [*inits, *containers]):
        return "Succeeded" if all(code == 0 for code in codes) else "Failed"
    for init in inits:
        if init.exit_code is None or init.exit_code != 0:
            return "Failed" if init.exit_code and policy == "Never" else "Pending"
    if all(code is not None for code in codes):
        if policy == "Always":
            return "Running"
        if all(code == 0 for code in codes):
            return "Succeeded"
        return "Failed" if policy == "Never" else "Running"
    is_fresh = any("waiting" in container.state and not container.last_state for container in containers)
    return "Pending" if is_fresh else "Running"


def pod_status(
    pod: Object,
    inits: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    facts: PodFacts,
    now: datetime.datetime,
) -> Object:
    """The whole status; conditions of others (PodScheduled, DisruptionTarget) and unchanged times are kept.

    An evicted pod says nothing of its containers any more.
    """
    policy = pod["spec"].get("restartPolicy", "Always")
    is_evicted = facts.is_evicted and facts.is_stopped
    phase = "Failed" if is_evicted else pod_phase(policy, inits, containers, is_stopped=facts.is_stopped)
    old = pod.get("status") or {}
    found: Object = {"observedGeneration": pod["metadata"].get("generation", 1), "phase": phase}
    found["conditions"] = _conditions(pod, phase, inits, containers, now)
    if is_evicted:
        disrupted = _condition(pod, "DisruptionTarget", True, {"reason": "TerminationByKubelet", "message": facts.message}, now)
        found["conditions"].insert(0, disrupted)
    if facts.message:
        found["message"] = facts.message
    if facts.reason:
        found["reason"] = facts.reason
    found["hostIP"], found["hostIPs"] = facts.host_ip, [{"ip": facts.host_ip}]
    has_started = any(container.container_id for container in [*inits, *containers])
    if has_started:
        found["podIP"], found["podIPs"] = facts.pod_ip, [{"ip": facts.pod_ip}]
    found["startTime"] = facts.start_time
    found["qosClass"] = old.get("qosClass", "BestEffort")
    if is_evicted:
        return found
    if inits:
        found["initContainerStatuses"] = [container.status(is_init=True) for container in inits]
    found["containerStatuses"] = [container.status() for container in containers]
    return found


def _conditions(
    pod: Object,
    phase: str,
    inits: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    now: datetime.datetime,
) -> list[Object]:
    unready = [container.name for container in containers if not container.is_running]
    ended = phase in ("Succeeded", "Failed")
    detail: Object = {}
    if phase == "Succeeded":
        detail = {"reason": "PodCompleted"}
    elif unready:
        reason = "PodFailed" if phase == "Failed" else "ContainersNotReady"
        detail = {"reason": reason, "message": f"containers with unready status: [{' '.join(unready)}]"}
    is_initialized = all(init.exit_code == 0 for init in inits)
    uninitialized = [init.name for init in inits if init.exit_code != 0]
    init_detail: Object = {"reason": "PodCompleted"} if phase == "Succeeded" else {}
    if uninitialized:
        text = f"containers with incomplete status: [{' '.join(uninitialized)}]"
        init_detail = {"reason": "ContainersNotInitialized", "message": text}
    has_sandbox = any(container.container_id for container in [*inits, *containers]) and not ended
    wanted: list[tuple[str, bool, Object]] = [
        ("PodReadyToStartContainers", has_sandbox, {}),
        ("Initialized", is_initialized, init_detail),
        ("Ready", not unready, detail),
        ("ContainersReady", not unready, detail),
    ]
    kept = [c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] not in _OURS]
    others = [c for c in kept if c["type"] != "PodScheduled"]
    scheduled = [c for c in kept if c["type"] == "PodScheduled"]
    if not scheduled:
        stamp = format_time(now)
        scheduled = [{"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}]
    return [*others, *(_condition(pod, *entry, now) for entry in wanted), *scheduled]


def _condition(pod: Object, kind: str, value: bool, detail: Object, now: datetime.datetime) -> Object:
    known = next((c for c in (pod.get("status") or {}).get("conditions") or [] if c["type"] == kind), None)
    stamp = format_time(now)
    if known is not None and is_true(pod, kind) == value:
        stamp = known["lastTransitionTime"]
    return {
        "type": kind,
        "observedGeneration": pod["metadata"].get("generation", 1),
        "status": "True" if value else "False",
        "lastProbeTime": None,
        "lastTransitionTime": stamp,
        **detail,
    }
