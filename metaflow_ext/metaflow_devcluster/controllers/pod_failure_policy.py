"""podFailurePolicy: what one failed pod means for its Job, and the sentence that says so.

The sentence is the only place where Kubernetes puts a pod's name and exit code into a condition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .objects import Object, name_of, namespace_of, status_of


@dataclass(frozen=True)
class Match:
    """The rule that applies; `message` is set for FailJob."""

    action: str
    message: str = ""


def match(policy: Object | None, pod: Object) -> Match | None:
    """The first rule that fits a failed pod, None when none does (then the failure is counted)."""
    for index, rule in enumerate((policy or {}).get("rules") or []):
        cause = _exit_code_cause(rule, pod) if rule.get("onExitCodes") else _condition_cause(rule, pod)
        if cause:
            action = rule["action"]
            return Match(action, f"{cause} matching {action} rule at index {index}")
    return None


def _exit_code_cause(rule: Object, pod: Object) -> str | None:
    wanted = rule["onExitCodes"]
    for name, code in _exit_codes(pod):
        if wanted.get("containerName") not in (None, name) or code == 0:
            continue
        if (code in wanted.get("values", [])) == (wanted.get("operator") == "In"):
            return f"Container {name} for pod {namespace_of(pod)}/{name_of(pod)} failed with exit code {code}"
    return None


def _exit_codes(pod: Object) -> Iterator[tuple[str, int]]:
    status = status_of(pod)
    for container in [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]:
        terminated = (container.get("state") or {}).get("terminated")
        if terminated:
            yield container["name"], terminated.get("exitCode", 0)


def _condition_cause(rule: Object, pod: Object) -> str | None:
    for pattern in rule.get("onPodConditions") or []:
        for found in status_of(pod).get("conditions") or []:
            if found["type"] == pattern["type"] and found["status"] == pattern.get("status", "True"):
                return f"Pod {namespace_of(pod)}/{name_of(pod)} has condition {found['type']}"
    return None
