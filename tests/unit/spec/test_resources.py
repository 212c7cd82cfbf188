"""Resources: what no node can give is refused, naming the attribute."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.resources import Resources


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"cpu": "0"}, "cpu must be greater than 0", id="cpu of nothing"),
        pytest.param({"cpu": "a"}, "not a Kubernetes quantity", id="cpu no quantity"),
        pytest.param({"memory": "-1"}, "memory must be greater", id="memory negative"),
        pytest.param({"memory": "500m"}, "less than one byte", id="memory in thousandths"),
        pytest.param({"disk": "0"}, "disk must be greater", id="disk of nothing"),
        pytest.param({"gpu": -1}, "gpu must be at least 0", id="gpu negative"),
        pytest.param({"gpu": 1.5}, "gpu is a whole number", id="gpu half"),
        pytest.param({"gpu": 1, "gpu_vendor": "n vidia"}, "gpu_vendor", id="gpu vendor no name"),
        pytest.param({"extended": {"a b": "1"}}, "extended_resources", id="extended key"),
        pytest.param({"extended": {"a.com/b": "x"}}, r"extended_resources\['a.com/b'\]", id="extended no quantity"),
        pytest.param({"extended": {"a.com/b": "-1"}}, "must not be negative", id="extended negative"),
    ],
)
def test_resources_refuse(fields: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        Resources(**fields)  # type: ignore[arg-type]


def test_the_resource_name_of_a_gpu_is_the_vendors() -> None:
    assert Resources(gpu=1, gpu_vendor="AMD").gpu_resource == "amd.com/gpu"
