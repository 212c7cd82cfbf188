"""Attributes of cluster policy, from the forms in which users write them to the values of a spec. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import InvalidSpec
from ..spec import names
from ..spec.affinity import require_affinity, with_instance_types
from ..spec.claims import ResourceClaim
from ..spec.fault_tolerance import FaultTolerance
from .structured import mapping, structured


def affinity(given: Any, instance_type: Any) -> dict[str, Any]:
    """core/v1 Affinity. `instance_type` is a name, names with commas between them, or a list."""
    found = camel_case(mapping(given, "affinity"))
    require_affinity(found)
    types = _texts(instance_type, "instance_type")
    for one in types:
        names.require_label("node.kubernetes.io/instance-type", one, "instance_type")
    return with_instance_types(found, types) if types else found


def resource_claims(given: Any) -> tuple[ResourceClaim, ...]:
    """A list of ResourceClaimTemplates, or a dictionary: name in the pod to a template, or to {"template" | "claim", "request"}."""
    value = structured(given, "resource_claims")
    if isinstance(value, Mapping):
        return tuple(_claim(name, entry) for name, entry in value.items())
    return tuple(ResourceClaim(name=_pod_name(template), template=template) for template in _texts(value, "resource_claims"))


def _claim(name: Any, entry: Any) -> ResourceClaim:
    if isinstance(entry, str):
        entry = {"template": entry}
    if not isinstance(entry, Mapping) or set(entry) - {"template", "claim", "request"}:
        raise InvalidSpec(f"resource_claims: {name} is a ResourceClaimTemplate, or template, claim and request, not {entry!r}.")
    return ResourceClaim(name=name, **entry)


def _pod_name(template: Any) -> str:
    names.require_dns_subdomain(template, "resource_claims:")
    if names.is_dns_label(template):
        return str(template)
    return f"{names.slug(template, names.MAX_LABEL - 9)}-{names.digest((template,))}"


def overlays(given: Any) -> tuple[Mapping[str, Any], ...]:
    """One overlay, or a list of them to be laid over each other."""
    value = structured(given, "pod_overlay")
    several = value if isinstance(value, (list, tuple)) else [value]
    return tuple(found for found in (mapping(one, "pod_overlay") for one in several) if found)


def fault_tolerance(given: Any) -> FaultTolerance | None:
    value = mapping(given, "fault_tolerance")
    known = [one.name for one in fields(FaultTolerance)]
    for name in value:
        if name not in known:
            raise InvalidSpec(f"fault_tolerance has no {name!r}; it has {', '.join(known)}.")
    made: dict[str, Any] = {
        name: tuple(one) if isinstance(one, list) else one for name, one in value.items() if one is not None
    }
    return FaultTolerance(**made) if value else None


def camel_case(fields: Any) -> dict[str, Any]:
    """Core takes `run_as_user` and `toleration_seconds`; Kubernetes' own spelling is left as it is, and so are labels' keys."""
    if not isinstance(fields, Mapping):
        raise InvalidSpec(f"A dictionary is wanted, not {fields!r}.")
    return {_camel(name): _camel_value(name, value) for name, value in fields.items() if value is not None}


def _camel(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidSpec(f"The name of a field is a text, not {name!r}.")
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _camel_value(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value) if name in ("match_labels", "matchLabels") else camel_case(value)
    if isinstance(value, (list, tuple)):
        return [camel_case(one) if isinstance(one, Mapping) else one for one in value]
    return value


def _texts(given: Any, what: str) -> tuple[str, ...]:
    if given in (None, ""):
        return ()
    found = [part.strip() for part in given.split(",")] if isinstance(given, str) else given
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, str) and one for one in found):
        raise InvalidSpec(f"{what} is a name or a list of names, not {given!r}.")
    return tuple(dict.fromkeys(found))
