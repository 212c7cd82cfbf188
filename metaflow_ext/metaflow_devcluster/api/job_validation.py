"""The rules of Jobs: at creation, and what may still change afterwards."""

from __future__ import annotations

import copy
from typing import Any

from ..errors import Cause
from . import names
from .pod_validation import template_causes

Object = dict[str, Any]
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_EXIT_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_MODES = ("NonIndexed", "Indexed")
_MAX_PARALLELISM = 100_000
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
_IMMUTABLE = "field is immutable"
NOT_NEGATIVE = "must be greater than or equal to 0"


def job_causes(job: Object) -> list[Cause]:
    spec = job["spec"]
    found = _number_causes(spec) + _mode_causes(spec) + _name_causes(job)
    found += _failure_policy_causes(spec) + _success_policy_causes(spec)
    found += template_causes(spec["template"], "spec.template")
    return found + _restart_policy_causes(spec) + _selector_causes(spec)


def _number_causes(spec: Object) -> list[Cause]:
    found = [
        names.wrong(f"spec.{key}", spec[key], NOT_NEGATIVE) for key in _NUMBERS if spec.get(key) is not None and spec[key] < 0
    ]
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(names.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    return found


def _mode_causes(spec: Object) -> list[Cause]:
    mode, completions, found = spec.get("completionMode"), spec.get("completions"), []
    if mode not in _MODES:
        return [names.unsupported("spec.completionMode", mode, _MODES)]
    if mode == "NonIndexed":
        return [
            names.wrong(f"spec.{key}", spec[key], "requires indexed completion mode")
            for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy")
            if spec.get(key) is not None
        ]
    if completions is None:
        found.append(names.required("spec.completions", "when completion mode is Indexed"))
    if spec["parallelism"] > _MAX_PARALLELISM:
        text = f"must be less than or equal to {_MAX_PARALLELISM} when completion mode is Indexed"
        found.append(names.wrong("spec.parallelism", spec["parallelism"], text))
    most = spec.get("maxFailedIndexes")
    if most is not None and completions is not None and most > completions:
        found.append(names.wrong("spec.maxFailedIndexes", most, "must be less than or equal to completions"))
    return found


def _name_causes(job: Object) -> list[Cause]:
    spec, name = job["spec"], job["metadata"].get("name")
    if not name or spec.get("completionMode") != "Indexed" or not spec.get("completions"):
        return []
    hostname = f"{name}-{spec['completions'] - 1}"
    if not names.dns_label(hostname):
        return []
    text = f"will not able to create pod with invalid DNS label: {hostname}"
    return [names.wrong("metadata.name", name, text)]


def _failure_policy_causes(spec: Object) -> list[Cause]:
    policy, found = spec.get("podFailurePolicy"), []
    wanted = ("Failed",) if policy else _REPLACEMENT
    if spec.get("podReplacementPolicy") not in wanted:
        found.append(names.unsupported("spec.podReplacementPolicy", spec.get("podReplacementPolicy"), wanted))
    if not policy:
        return found
    pod = spec["template"]["spec"]
    containers = {c.get("name") for key in ("containers", "initContainers") for c in pod.get(key) or ()}
    for index, rule in enumerate(policy.get("rules") or ()):
        found += _rule_causes(spec, rule, f"spec.podFailurePolicy.rules[{index}]", containers)
    return found


def _rule_causes(spec: Object, rule: Object, path: str, containers: set[str]) -> list[Cause]:
    action, found = rule.get("action") or "", []
    if not action:
        listed = " ".join(f'"{name}"' for name in _ACTIONS)
        found.append(names.required(f"{path}.action", f"valid values: [{listed}]"))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        found.append(names.wrong(f"{path}.action", action, "requires the backoffLimitPerIndex to be set"))
    elif action not in _ACTIONS:
        found.append(names.unsupported(f"{path}.action", action, _ACTIONS))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        found += _exit_code_causes(codes, f"{path}.onExitCodes", containers)
    for index, pattern in enumerate(conditions or ()):
        at = f"{path}.onPodConditions[{index}]"
        found += names.each_text(f"{at}.type", pattern.get("type") or "", names.qualified_name(pattern.get("type") or ""))
        if pattern.get("status") not in _STATUSES:
            found.append(names.unsupported(f"{at}.status", pattern.get("status"), _STATUSES))
    if codes is not None and conditions:
        text = "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(Cause(path, text))
    if codes is None and not conditions:
        found.append(Cause(path, "Invalid value: specifying one of OnExitCodes and OnPodConditions is required"))
    return found


def _exit_code_causes(codes: Object, path: str, containers: set[str]) -> list[Cause]:
    operator, values, found = codes.get("operator"), codes.get("values") or [], []
    if operator not in _EXIT_OPERATORS:
        found.append(names.unsupported(f"{path}.operator", operator, _EXIT_OPERATORS))
    if codes.get("containerName") is not None and codes["containerName"] not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        found.append(names.wrong(f"{path}.containerName", codes["containerName"], text))
    if not values:
        found.append(names.wrong(f"{path}.values", values, "at least one value is required"))
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(names.wrong(f"{path}.values[{index}]", 0, "must not be 0 for the In operator"))
        if value in values[:index]:
            found.append(names.duplicate(f"{path}.values[{index}]", value))
    if sorted(values) != values:
        found.append(names.wrong(f"{path}.values", values, "must be ordered"))
    return found


def _success_policy_causes(spec: Object) -> list[Cause]:
    policy, path = spec.get("successPolicy"), "spec.successPolicy.rules"
    if policy is None or spec.get("completionMode") != "Indexed":
        return []
    if not policy.get("rules"):
        return [names.required(path, "at least one rules must be specified when the successPolicy is specified")]
    return [
        names.required(f"{path}[{i}]", "at least one of succeededCount or succeededIndexes must be specified")
        for i, rule in enumerate(policy["rules"])
        if rule.get("succeededCount") is None and rule.get("succeededIndexes") is None
    ]


def _restart_policy_causes(spec: Object) -> list[Cause]:
    policy, path = spec["template"]["spec"].get("restartPolicy"), "spec.template.spec.restartPolicy"
    if policy in (None, "", "Always"):
        return [names.required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [names.unsupported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") and policy != "Never":
        return [names.wrong(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _selector_causes(spec: Object) -> list[Cause]:
    if not spec.get("selector"):
        return [names.required("spec.selector")]
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    wanted = spec["selector"].get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        text = "`selector` does not match template `labels`"
        return [names.wrong("spec.template.metadata.labels", labels, text)]
    return []


def job_update_causes(new: Object, old: Object) -> list[Cause]:
    spec, before = new["spec"], old["spec"]
    found = job_causes(new) + _completions_causes(spec, before)
    for key in ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if spec.get(key) != before.get(key):
            found.append(names.wrong(f"spec.{key}", spec.get(key), _IMMUTABLE))
    if spec["template"] != _allowed_template(spec["template"], old):
        found.append(names.wrong("spec.template", spec["template"], _IMMUTABLE))
    return found


def _completions_causes(spec: Object, before: Object) -> list[Cause]:
    wanted, path = spec.get("completions"), "spec.completions"
    if wanted == before.get("completions"):
        return []
    if before.get("completionMode") != "Indexed" or wanted is None or before.get("completions") is None:
        return [names.wrong(path, wanted, _IMMUTABLE)]
    if wanted != spec.get("parallelism"):
        return [names.wrong(path, wanted, "can only be modified in tandem with spec.parallelism")]
    return []


def _allowed_template(template: Object, old: Object) -> Object:
    """The old template, with the scheduling directives of the new one while the Job is suspended and not started."""
    allowed: Object = old["spec"]["template"]
    if not old["spec"].get("suspend") or (old.get("status") or {}).get("startTime"):
        return allowed
    allowed = copy.deepcopy(allowed)
    for key in ("labels", "annotations"):
        _take(allowed.setdefault("metadata", {}), template.get("metadata") or {}, key)
    for key in _SCHEDULING:
        _take(allowed["spec"], template["spec"], key)
    affinity = allowed["spec"].setdefault("affinity", {})
    _take(affinity, template["spec"].get("affinity") or {}, "nodeAffinity")
    if not affinity and "affinity" not in template["spec"]:
        del allowed["spec"]["affinity"]
    return allowed


def _take(target: Object, source: Object, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)
