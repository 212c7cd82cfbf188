"""Any field of a pod, laid over the pod that we made, so that nobody waits for an attribute.

An overlay is a part of a pod's template (`metadata`, `spec`) or of its spec alone, in Kubernetes' own spelling. It is merged as
`kubectl patch` merges (strategic merge): dictionaries field by field; lists of things that have a name by that name; other
lists as a whole. A field that is null, or a thing with `$patch: delete`, is taken away; `$patch: replace` in a dictionary puts
it in the place of what was there. The name "*" is every thing of the list.

Source: the patchStrategy and patchMergeKey of core/v1 (k8s.io/api/core/v1/types.go).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InvalidSpec
from . import labels

EVERY = "*"
_PATCH = "$patch"
# Lists by the key that tells their things apart; all others are replaced.
_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
# What following a workload depends on, and why it must stay.
_KEPT = {
    "restartPolicy": "a rank that ends has ended, and retries are Metaflow's",
    "activeDeadlineSeconds": "it is @timeout's",
    "terminationGracePeriodSeconds": "it is the attribute grace_period",
    "hostname": "ranks find each other by it",
    "subdomain": "ranks find each other by it",
}
_TEMPLATE = frozenset({"metadata", "spec"})


def as_template(overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The overlay as a part of a pod's template."""
    return dict(overlay) if set(overlay) <= _TEMPLATE else {"spec": dict(overlay)}


def require_overlay(overlay: Mapping[str, Any], container: str) -> None:
    """InvalidSpec unless it leaves alone what a rank is known by: its container, its restart policy, its labels."""
    if not isinstance(overlay, Mapping):
        raise InvalidSpec(f"pod_overlay is a dictionary, not {overlay!r}.")
    _require_json(overlay, "pod_overlay")
    template = as_template(overlay)
    for part in template:
        if not isinstance(template[part], Mapping):
            raise InvalidSpec(f"pod_overlay: {part} is a dictionary, not {template[part]!r}.")
    spec, metadata = template.get("spec", {}), template.get("metadata", {})
    for name, why in _KEPT.items():
        if name in spec:
            raise InvalidSpec(f"pod_overlay can't set {name}: {why}.")
    for where in (template, spec, metadata):
        if _PATCH in where:
            raise InvalidSpec("pod_overlay can't replace the whole pod; put $patch into the field that it is meant for.")
    unknown = sorted(set(metadata) - {"labels", "annotations"})
    if unknown:
        raise InvalidSpec(f"pod_overlay: metadata has labels and annotations to set, not {', '.join(unknown)}.")
    for kind in ("labels", "annotations"):
        _require_own(metadata.get(kind), f"metadata.{kind}")
    _require_container(spec.get("containers", ()), container)


def laid_over(template: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The pod's template with the overlay merged into it. InvalidSpec where it doesn't fit."""
    merged: dict[str, Any] = _merged(template, as_template(overlay), "pod_overlay")
    return merged


def _merged(base: Any, patch: Any, where: str) -> Any:
    if isinstance(patch, Mapping):
        directive = patch.get(_PATCH)
        if directive == "replace":
            return _clean({key: value for key, value in patch.items() if key != _PATCH}, where)
        if directive is not None:
            raise InvalidSpec(f"{where}: $patch is replace, or delete for one thing of a list, not {directive!r}.")
        return _merged_fields(base if isinstance(base, Mapping) else {}, patch, where)
    return _clean(patch, where)


def _merged_fields(base: Mapping[str, Any], patch: Mapping[str, Any], where: str) -> dict[str, Any]:
    result = dict(base)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif name in _KEYS and isinstance(value, (list, tuple)):
            result[name] = _merged_list(base.get(name) or (), value, _KEYS[name], f"{where}: {name}")
        else:
            result[name] = _merged(base.get(name), value, f"{where}: {name}")
    return result


def _merged_list(base: Sequence[Mapping[str, Any]], patch: Sequence[Any], key: str, where: str) -> list[Any]:
    result = [dict(item) for item in base]
    for item in patch:
        if not isinstance(item, Mapping) or key not in item:
            raise InvalidSpec(f"{where} holds dictionaries with {key!r}, not {item!r}.")
        fits = [at for at, found in enumerate(result) if item[key] in (EVERY, found.get(key))]
        if item.get(_PATCH) == "delete":
            result = [found for at, found in enumerate(result) if at not in fits]
        elif item[key] == EVERY:
            for at in fits:
                result[at] = _merged(result[at], {**item, key: result[at][key]}, where)
        elif fits:
            result[fits[0]] = _merged(result[fits[0]], item, f"{where} {item[key]}")
        else:
            result.append(_merged({}, item, f"{where} {item[key]}"))
    return result


def _clean(value: Any, where: str) -> Any:
    """What is put in anew: without nulls, which mean nothing there."""
    if isinstance(value, Mapping):
        if _PATCH in value:
            raise InvalidSpec(f"{where}: $patch stands in a list or a field that is replaced as a whole.")
        return {key: _clean(item, where) for key, item in value.items() if item is not None}
    return [_clean(item, where) for item in value] if isinstance(value, (list, tuple)) else value


def _require_own(pairs: Any, where: str) -> None:
    if pairs is None:
        return
    if not isinstance(pairs, Mapping):
        raise InvalidSpec(f"pod_overlay: {where} is a dictionary, not {pairs!r}.")
    taken = [key for key in pairs if key.startswith(labels.PREFIX)] + ([_PATCH] if _PATCH in pairs else [])
    if taken:
        raise InvalidSpec(f"pod_overlay can't set {where}: {', '.join(sorted(taken))} is how workloads are found.")


def _require_container(containers: Any, ours: str) -> None:
    if not isinstance(containers, (list, tuple)):
        raise InvalidSpec(f"pod_overlay: containers is a list, not {containers!r}.")
    for item in containers:
        if isinstance(item, Mapping) and item.get("name") in (ours, EVERY):
            if _PATCH in item:
                raise InvalidSpec(f"pod_overlay can't delete or replace container {ours}: it is what the pod runs.")
            for name in ("command", "args", "image"):
                if name in item:
                    advice = "set the attribute image" if name == "image" else "it runs the step"
                    raise InvalidSpec(f"pod_overlay can't set {name} of container {ours}: {advice}.")


def _require_json(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise InvalidSpec(f"{where} has names of fields that are text, not {key!r}.")
            _require_json(item, f"{where}: {key}")
    elif isinstance(value, (list, tuple)):
        for item in value:
            _require_json(item, where)
    elif not (value is None or isinstance(value, (str, bool, int, float))) or value != value or value in (_INF, -_INF):
        raise InvalidSpec(f"{where} holds {value!r}, which JSON has not.")


_INF = float("inf")
