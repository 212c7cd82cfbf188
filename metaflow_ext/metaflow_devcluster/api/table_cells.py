"""What stands in the cells of kubectl's tables: the words and abbreviations of the real printers."""

from __future__ import annotations

import datetime
from typing import Any

Object = dict[str, Any]
_UNKNOWN = "<unknown>"


def moment(text: str | None) -> datetime.datetime | None:
    if not text:
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def human(seconds: float) -> str:
    """`3m20s`, `2d4h`: a duration with at most two units, as kubectl abbreviates it."""
    total = int(seconds)
    if total < 0:
        return "0s" if total >= -1 else "<invalid>"
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years = days // 365
    return f"{years}y{days % 365}d" if years < 8 and days % 365 else f"{years}y"


def age(text: str | None, now: datetime.datetime) -> str:
    since = moment(text)
    return human((now - since).total_seconds()) if since else _UNKNOWN


def _statuses(pod: Object, key: str = "containerStatuses") -> list[Object]:
    return (pod.get("status") or {}).get(key) or []


def pod_ready(pod: Object) -> str:
    ready = sum(bool(status.get("ready")) for status in _statuses(pod))
    return f"{ready}/{len(pod['spec'].get('containers') or ())}"


def pod_status(pod: Object) -> str:
    """The STATUS column: the phase, or what a container says that is more telling."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase") or ""
    if any(c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ()):
        reason = "SchedulingGated"
    told = next(filter(None, (_init_reason(pod, i, s) for i, s in enumerate(_statuses(pod, "initContainerStatuses")))), "")
    if told:
        reason = told
    else:
        for container in reversed(_statuses(pod)):
            reason = _container_reason(container) or reason
        if reason == "Completed" and any((s.get("state") or {}).get("running") for s in _statuses(pod)):
            reason = "Running"
    if pod["metadata"].get("deletionTimestamp") and status.get("phase") not in ("Succeeded", "Failed"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _container_reason(container: Object) -> str:
    state = container.get("state") or {}
    if (state.get("waiting") or {}).get("reason"):
        return str(state["waiting"]["reason"])
    ended = state.get("terminated")
    if not ended:
        return ""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _init_reason(pod: Object, index: int, container: Object) -> str:
    ended = (container.get("state") or {}).get("terminated")
    if ended and ended.get("exitCode") == 0:
        return ""
    reason = _container_reason(container)
    if reason and reason != "PodInitializing":
        return f"Init:{reason}"
    return f"Init:{index}/{len(pod['spec'].get('initContainers') or ())}"


def pod_restarts(pod: Object, now: datetime.datetime) -> str:
    total = sum(status.get("restartCount", 0) for status in _statuses(pod))
    ends = [((s.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for s in _statuses(pod)]
    last = max(filter(None, ends), default=None)
    return f"{total} ({age(last, now)} ago)" if total and last else str(total)


def _is_true(obj: Object, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c["type"] == kind and c["status"] == "True" for c in conditions)


def job_status(job: Object) -> str:
    for kind in ("Complete", "Failed"):
        if _is_true(job, kind):
            return kind
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind, word in (("Suspended", "Suspended"), ("FailureTarget", "FailureTarget")):
        if _is_true(job, kind):
            return word
    return "SuccessCriteriaMet" if _is_true(job, "SuccessCriteriaMet") else "Running"


def completions(job: Object) -> str:
    succeeded = (job.get("status") or {}).get("succeeded", 0)
    wanted = job["spec"].get("completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = job["spec"].get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def duration(job: Object, now: datetime.datetime) -> str:
    status = job.get("status") or {}
    started = moment(status.get("startTime"))
    if not started:
        return ""
    ended = moment(status.get("completionTime"))
    if not ended and _is_true(job, "Failed"):
        ended = moment(next(c["lastTransitionTime"] for c in status["conditions"] if c["type"] == "Failed"))
    return human(((ended or now) - started).total_seconds())


def selector_text(selector: Object | None) -> str:
    labels = (selector or {}).get("matchLabels") or {}
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) or "<none>"


def service_external(service: Object) -> str:
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName"))
    return "<pending>" if spec.get("type") == "LoadBalancer" else "<none>"


def service_ports(service: Object) -> str:
    ports = service["spec"].get("ports") or ()
    return ",".join(f"{port['port']}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


def _event_times(event: Object) -> tuple[str | None, str | None]:
    first = event.get("firstTimestamp") or event.get("eventTime")
    series = event.get("series") or {}
    return first, series.get("lastObservedTime") or event.get("lastTimestamp") or first


def event_age(event: Object, now: datetime.datetime) -> str:
    first, last = _event_times(event)
    if event_count(event) > 1:
        return f"{age(last, now)} (x{event_count(event)} over {age(first, now)})"
    return age(last, now)


def event_count(event: Object) -> int:
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)


def event_source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def node_status(node: Object) -> str:
    word = "Ready" if _is_true(node, "Ready") else "NotReady"
    if not any(c["type"] == "Ready" for c in (node.get("status") or {}).get("conditions") or ()):
        word = "Unknown"
    return f"{word},SchedulingDisabled" if node["spec"].get("unschedulable") else word


def node_roles(node: Object) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = node["metadata"].get("labels") or {}
    return ",".join(sorted(key.removeprefix(prefix) for key in labels if key.startswith(prefix))) or "<none>"


def node_address(node: Object, kind: str) -> str:
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((a["address"] for a in addresses if a["type"] == kind), "<none>")


def quota_column(quota: Object, *, limits: bool) -> str:
    status = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    keys = sorted(key for key in hard if key.startswith("limits") == limits)
    return ", ".join(f"{key}: {used.get(key, '0')}/{hard[key]}" for key in keys)
