"""An overlay is merged as `kubectl patch` merges, and leaves alone what a rank is known by."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.overlay import laid_over, require_overlay

POD = {
    "metadata": {"labels": {"a": "1"}},
    "spec": {
        "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [{"name": "train", "env": [{"name": "A", "value": "1"}], "resources": {"limits": {"cpu": "1"}}}],
    },
}


@pytest.mark.parametrize(
    ("overlay", "path", "expected"),
    [
        pytest.param({"hostNetwork": True}, ("hostNetwork",), True, id="a field of the spec alone"),
        pytest.param({"nodeSelector": {"zone": "a"}}, ("nodeSelector",), {"pool": "gpu", "zone": "a"}, id="merged"),
        pytest.param({"nodeSelector": None}, ("nodeSelector",), None, id="taken away"),
        pytest.param({"nodeSelector": {"$patch": "replace", "zone": "a"}}, ("nodeSelector",), {"zone": "a"}, id="replaced"),
        pytest.param({"tolerations": [{"key": "x", "operator": "Exists"}]}, ("tolerations", 0, "key"), "x", id="atomic list"),
        pytest.param(
            {"containers": [{"name": "*", "env": [{"name": "B", "value": "2"}]}]},
            ("containers", 0, "env"),
            [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            id="by name, in every container",
        ),
        pytest.param(
            {"containers": [{"name": "train", "env": [{"name": "A", "$patch": "delete"}]}]}, ("containers", 0, "env"), [],
            id="deleted from a list",
        ),
        pytest.param({"containers": [{"name": "sidecar", "image": "x"}]}, ("containers", 1, "name"), "sidecar", id="added"),
    ],
)  # fmt: skip
def test_merged(overlay: dict[str, Any], path: tuple[Any, ...], expected: Any) -> None:
    require_overlay(overlay, "train")
    found: Any = laid_over(POD, overlay)["spec"]
    for part in path:
        found = found.get(part) if isinstance(found, dict) else found[part]
    assert found == expected


@pytest.mark.parametrize(
    ("overlay", "text"),
    [
        ({"restartPolicy": "Always"}, "can't set restartPolicy"),
        ({"containers": [{"name": "train", "$patch": "delete"}]}, "can't delete or replace container train"),
        ({"containers": [{"name": "*", "command": ["sh"]}]}, "can't set command"),
        ({"metadata": {"labels": {"metaflow.org/flow": "x"}}}, "is how workloads are found"),
        ({"metadata": {"name": "x"}}, "labels and annotations to set, not name"),
        ({"a": float("nan")}, "which JSON has not"),
    ],
)
def test_refused(overlay: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        require_overlay(overlay, "train")
    assert text in str(caught.value)
