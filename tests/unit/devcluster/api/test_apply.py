"""Server-side apply."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_devcluster.api.apply import applied, field_set
from metaflow_devcluster.api.schema import Schemas
from metaflow_devcluster.errors import ApiError

SCHEMAS = Schemas()
CONFIG_MAP = SCHEMAS.root("", "v1", "ConfigMap") or {}
POD = SCHEMAS.root("", "v1", "Pod") or {}
Object = dict[str, Any]


def config(**data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}


def apply(live: Object | None, wanted: Object, manager: str = "x", *, force: bool = False, node: Object = CONFIG_MAP) -> Object:
    return applied(SCHEMAS, node, live, wanted, manager=manager, force=force, now="2026-01-01T00:00:00Z")


def test_the_fields_of_an_applied_object_belong_to_its_manager() -> None:
    entry = apply(None, config(a="1"))["metadata"]["managedFields"][0]
    assert (entry["manager"], entry["operation"], entry["fieldsV1"]) == ("x", "Apply", {"f:data": {"f:a": {}}})


def test_what_is_no_longer_applied_goes() -> None:
    live = apply(None, config(a="1", b="2"))
    assert apply(live, config(b="2"))["data"] == {"b": "2"}


def test_what_another_manager_applied_too_stays() -> None:
    live = apply(apply(None, config(a="1")), config(a="1", b="2"), "y")
    assert apply(live, config())["data"] == {"a": "1", "b": "2"}


def test_fields_that_nobody_applied_stay() -> None:
    live = {**config(z="9"), "metadata": {"name": "a"}}
    assert apply(apply(live, config(a="1")), config())["data"] == {"z": "9"}


def test_changing_what_another_manager_owns_is_a_conflict_that_force_wins() -> None:
    live = apply(None, config(a="1"))
    with pytest.raises(ApiError) as refused:
        apply(live, config(a="2"), "y")
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "x": .data.a'
    forced = apply(live, config(a="2"), "y", force=True)
    assert forced["data"] == {"a": "2"}
    assert [entry["manager"] for entry in forced["metadata"]["managedFields"]] == ["y"]


def test_applying_the_same_again_changes_nothing() -> None:
    live = apply(None, config(a="1"))
    assert apply(live, config(a="1")) == live


def pod(*containers: Object) -> Object:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": list(containers)}}


def test_keyed_lists_merge_element_by_element() -> None:
    live = apply(None, pod({"name": "a", "image": "1"}), node=POD)
    both = apply(live, pod({"name": "b", "image": "2"}), "y", node=POD)
    assert [c["name"] for c in both["spec"]["containers"]] == ["a", "b"]
    without = apply(both, pod(), "y", node=POD)
    assert without["spec"]["containers"] == [{"name": "a", "image": "1"}]


def test_the_path_of_a_conflict_names_the_element() -> None:
    live = apply(None, pod({"name": "a", "image": "1"}), node=POD)
    with pytest.raises(ApiError, match=r'\.spec\.containers\[name="a"\]\.image'):
        apply(live, pod({"name": "a", "image": "2"}), "y", node=POD)


def test_the_field_set_has_keys_and_values_of_lists() -> None:
    wanted = {"metadata": {"finalizers": ["a/b"]}, **pod({"name": "a", "ports": [{"containerPort": 1}]})}
    fields = field_set(SCHEMAS, POD, {**wanted, "metadata": {"finalizers": ["a/b"]}})
    assert fields["f:metadata"] == {"f:finalizers": {'v:"a/b"': {}}}
    ports = fields["f:spec"]["f:containers"]['k:{"name":"a"}']["f:ports"]
    assert list(ports) == ['k:{"containerPort":1,"protocol":"TCP"}']
