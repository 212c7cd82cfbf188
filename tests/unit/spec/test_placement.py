"""Placement: Kubernetes' rules for tolerations and node selectors, before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.placement import Placement


@pytest.mark.parametrize(
    "item",
    [
        pytest.param({"operator": "Exists"}, id="everything"),
        pytest.param({"key": "gpu", "operator": "Equal", "value": "a100", "effect": "NoSchedule"}, id="equal"),
        pytest.param({"key": "gpu", "value": "a100"}, id="equal is the default"),
        pytest.param({"key": "n.io/x", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}, id="for a while"),
        pytest.param({"key": "sla", "operator": "Gt", "value": "950", "effect": "NoSchedule"}, id="comparison"),
    ],
)
def test_tolerations(item: dict[str, Any]) -> None:
    assert Placement(tolerations=(item,)).tolerations == (item,)


@pytest.mark.parametrize("field", ["priority_class", "scheduler"])
def test_names_of_others(field: str) -> None:
    assert getattr(Placement(**{field: "high.example"}), field) == "high.example"
    with pytest.raises(InvalidSpec, match=f"{field} 'No_Name' is not valid"):
        Placement(**{field: "No_Name"})


@pytest.mark.parametrize(
    ("item", "text"),
    [
        pytest.param({"key": "a", "toleration_seconds": 3}, "has no field toleration_seconds", id="unknown field"),
        pytest.param({"key": "a", "operator": "In"}, "operator of a toleration", id="operator"),
        pytest.param({"key": "a", "effect": "Never"}, "effect of a toleration", id="effect"),
        pytest.param({}, "without a key", id="nothing"),
        pytest.param({"value": "a"}, "without a key", id="value without key"),
        pytest.param({"key": "a", "operator": "Exists", "value": "b"}, "has no value", id="exists with value"),
        pytest.param({"key": "a", "operator": "Exists", "tolerationSeconds": 3}, "NoExecute", id="seconds without NoExecute"),
        pytest.param({"key": "a", "effect": "NoExecute", "tolerationSeconds": "3"}, "whole number", id="seconds as text"),
        pytest.param({"key": "a b", "operator": "Exists"}, "toleration: label key", id="key"),
        pytest.param({"key": "a", "value": "b c"}, "toleration: label a=", id="value"),
    ],
)
def test_bad_tolerations_are_refused(item: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        Placement(tolerations=(item,))


@pytest.mark.parametrize("selector", [{"a b": "x"}, {"a": "x y"}, {"a": None}, {"": "x"}])
def test_bad_node_selectors_are_refused(selector: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="node_selector"):
        Placement(node_selector=selector)
