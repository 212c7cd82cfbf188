"""Which nodes a pod wants, and near which other pods (core/v1 Affinity), by Kubernetes' own rules (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InvalidSpec
from . import names
from .fields import Rule, label_key, label_pairs, many, one_of, require, struct, texts, whole

REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def require_affinity(affinity: Mapping[str, Any]) -> None:
    """InvalidSpec unless `affinity`, in camelCase, is one that Kubernetes takes."""
    require(affinity, _AFFINITY, "affinity")


def with_instance_types(affinity: Mapping[str, Any], types: Iterable[str]) -> dict[str, Any]:
    """`affinity` with nodes of these types alone; its own terms are alternatives, so each gets the condition."""
    node = dict(affinity.get("nodeAffinity") or {})
    terms = (node.get(REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    condition = {"key": INSTANCE_TYPE, "operator": "In", "values": list(types)}
    narrowed = [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), condition]} for term in terms]
    return {**affinity, "nodeAffinity": {**node, REQUIRED: {"nodeSelectorTerms": narrowed}}}


def _expression(operators: tuple[str, ...], *, of_nodes: bool) -> Rule:
    fields: dict[str, Rule] = {"key": label_key, "operator": one_of(*operators), "values": texts}

    def rule(value: Any, where: str) -> str:
        require(value, fields, where, ("key", "operator"))
        operator, values = value["operator"], list(value.get("values") or ())
        if operator in ("In", "NotIn") and not values:
            raise InvalidSpec(f"{where}: the operator {operator} needs values.")
        if operator in ("Exists", "DoesNotExist") and values:
            raise InvalidSpec(f"{where}: the operator {operator} takes no values.")
        if operator in ("Gt", "Lt") and (len(values) != 1 or not values[0].lstrip("-").isdecimal()):
            raise InvalidSpec(f"{where}: the operator {operator} needs one value, a whole number as text.")
        if not of_nodes or operator in ("In", "NotIn"):
            for one in values:
                names.require_label(value["key"], one, where)
        return ""

    return rule


_NODE_EXPRESSION = _expression(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), of_nodes=True)
_POD_EXPRESSION = _expression(("In", "NotIn", "Exists", "DoesNotExist"), of_nodes=False)


def _node_field(value: Any, where: str) -> str:
    """The one field that Kubernetes selects nodes by."""
    require(
        value,
        {"key": one_of("metadata.name"), "operator": one_of("In", "NotIn"), "values": texts},
        where,
        ("key", "operator", "values"),
    )
    if len(value["values"]) != 1:
        raise InvalidSpec(f"{where}: values holds one node's name.")
    names.require_dns_subdomain(value["values"][0], where)
    return ""


def _namespace(value: Any, where: str) -> str:
    names.require_dns_label(value, where)
    return ""


def _pod_term(value: Any, where: str) -> str:
    require(value, _POD_TERM, where, ("topologyKey",))
    for one, other in (("matchLabelKeys", "mismatchLabelKeys"), ("mismatchLabelKeys", "matchLabelKeys")):
        keys = value.get(one) or ()
        if keys and "labelSelector" not in value:
            raise InvalidSpec(f"{where}: {one} needs a labelSelector.")
        if len(set(keys)) != len(keys) or set(keys) & set(value.get(other) or ()):
            raise InvalidSpec(f"{where}: a key stands twice in {one} and {other}.")
    return ""


def _weighted(name: str, term: Rule) -> Rule:
    return struct({"weight": whole(1, 100), name: term}, "weight", name)


_SELECTOR = struct({"matchLabels": label_pairs, "matchExpressions": many(_POD_EXPRESSION)})
_POD_TERM: Mapping[str, Rule] = {
    "labelSelector": _SELECTOR,
    "matchLabelKeys": many(label_key),
    "mismatchLabelKeys": many(label_key),
    "namespaceSelector": _SELECTOR,
    "namespaces": many(_namespace),
    "topologyKey": label_key,
}
_NODE_TERM = struct({"matchExpressions": many(_NODE_EXPRESSION), "matchFields": many(_node_field)})
_POD_AFFINITY = struct({REQUIRED: many(_pod_term), PREFERRED: many(_weighted("podAffinityTerm", _pod_term))})
_AFFINITY: Mapping[str, Rule] = {
    "nodeAffinity": struct(
        {
            REQUIRED: struct({"nodeSelectorTerms": many(_NODE_TERM, least=1)}, "nodeSelectorTerms"),
            PREFERRED: many(_weighted("preference", _NODE_TERM)),
        }
    ),
    "podAffinity": _POD_AFFINITY,
    "podAntiAffinity": _POD_AFFINITY,
}
