"""JSON patch, merge patch, strategic merge patch."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_devcluster.api.patches import json_patch, merge_patch, strategic_merge_patch
from metaflow_devcluster.api.schema import Schemas
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.store import clone

SCHEMAS = Schemas()
POD = SCHEMAS.root("", "v1", "Pod") or {}
CONTAINERS = [{"name": "a", "image": "x", "env": [{"name": "K", "value": "1"}]}, {"name": "b", "image": "y"}]


@pytest.mark.parametrize(
    ("document", "patch", "expected"),
    [
        pytest.param({"a": 1, "b": 2}, {"b": None, "c": 3}, {"a": 1, "c": 3}, id="null deletes"),
        pytest.param({"a": {"x": 1}}, {"a": {"y": 2}}, {"a": {"x": 1, "y": 2}}, id="objects merge"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists are replaced"),
        pytest.param({"a": 1}, {"a": {"b": None}}, {"a": {}}, id="a value becomes an object"),
        pytest.param({"a": 1}, {"z": None}, {"a": 1}, id="deleting nothing"),
    ],
)
def test_merge_patch(document: Any, patch: Any, expected: Any) -> None:
    before = clone(document)
    assert merge_patch(document, patch) == expected
    assert document == before


def test_json_patch() -> None:
    assert json_patch({"a": {"b": 1}}, [{"op": "add", "path": "/a/c", "value": 2}]) == {"a": {"b": 1, "c": 2}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 9},
        {"op": "remove", "path": "/z"},
        {"op": "nonsense", "path": "/a"},
        {"path": "/a"},
        {"op": "add", "path": "/a/b/c", "value": 1},
    ],
)
def test_a_json_patch_that_fails_is_one_and_the_same_refusal(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1}, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"


def patched(spec: dict[str, Any], patch: dict[str, Any]) -> Any:
    return strategic_merge_patch(SCHEMAS, POD, {"spec": spec}, {"spec": patch})["spec"]


@pytest.mark.parametrize(
    ("spec", "patch", "expected"),
    [
        pytest.param(
            {"containers": CONTAINERS},
            {"containers": [{"name": "b", "image": "z"}]},
            {"containers": [CONTAINERS[0], {"name": "b", "image": "z"}]},
            id="elements merge by their key",
        ),
        pytest.param(
            {"containers": CONTAINERS},
            {"containers": [{"name": "a", "env": [{"name": "L", "value": "2"}]}]},
            {
                "containers": [
                    {**CONTAINERS[0], "env": [{"name": "K", "value": "1"}, {"name": "L", "value": "2"}]},
                    CONTAINERS[1],
                ]
            },
            id="nested lists too",
        ),
        pytest.param(
            {"containers": CONTAINERS},
            {"containers": [{"name": "a", "$patch": "delete"}]},
            {"containers": [CONTAINERS[1]]},
            id="an element is deleted",
        ),
        pytest.param(
            {"containers": CONTAINERS},
            {"containers": [{"$patch": "replace"}, {"name": "c"}]},
            {"containers": [{"name": "c"}]},
            id="a list is replaced",
        ),
        pytest.param(
            {"containers": CONTAINERS},
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "image": "z"}]},
            {"containers": [{"name": "b", "image": "z"}, CONTAINERS[0]]},
            id="the order is set",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
            {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]},
            id="other keys are dropped",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}},
            {"nodeSelector": {"$patch": "replace", "c": "d"}},
            {"nodeSelector": {"c": "d"}},
            id="a map is replaced",
        ),
        pytest.param({"nodeName": "n"}, {"nodeName": None}, {}, id="null deletes"),
        pytest.param(
            {"tolerations": [{"key": "a"}]},
            {"tolerations": [{"key": "b"}]},
            {"tolerations": [{"key": "b"}]},
            id="a list without a strategy is replaced",
        ),
    ],
)
def test_strategic_merge_patch(spec: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]) -> None:
    before = clone(spec)
    assert patched(spec, patch) == expected
    assert spec == before


def test_lists_of_plain_values_merge_and_lose_what_is_named() -> None:
    document = {"metadata": {"finalizers": ["a/b", "c/d"]}}
    added = strategic_merge_patch(SCHEMAS, POD, document, {"metadata": {"finalizers": ["e/f"]}})
    assert added["metadata"]["finalizers"] == ["a/b", "c/d", "e/f"]
    removed = strategic_merge_patch(SCHEMAS, POD, document, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}})
    assert removed["metadata"]["finalizers"] == ["c/d"]


def test_an_element_without_its_key_is_refused() -> None:
    with pytest.raises(ApiError, match="does not contain declared merge key: name"):
        patched({"containers": CONTAINERS}, {"containers": [{"image": "z"}]})
