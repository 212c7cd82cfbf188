"""What a user types to name workloads."""

from __future__ import annotations

import pytest
from metaflow.exception import MetaflowException

from metaflow_extensions.kubernetes_ext.cli.targets import Target, parse, selector


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("12", Target("12"), id="a run"),
        pytest.param("12/train", Target("12", "train"), id="a step"),
        pytest.param("12/train/3", Target("12", "train", "3"), id="a task"),
        pytest.param("MyFlow/12/train", Target("12", "train"), id="with the flow"),
        pytest.param("12/train/3-worker-1", Target("12", "train", "3", 2), id="a worker is a rank of its gang"),
        pytest.param("MyFlow", Target("MyFlow"), id="a run could be called so"),
    ],
)
def test_parse(text: str, expected: Target) -> None:
    assert parse("MyFlow", text) == expected


@pytest.mark.parametrize("text", ["", "1//2", "1/2/3/4", "/"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(MetaflowException, match="is not RUN, RUN/STEP or RUN/STEP/TASK"):
        parse("MyFlow", text)


def test_a_selector_has_only_what_is_asked_for() -> None:
    found = selector("MyFlow", Target("12", "train"), None, "team=a")
    assert found.split(",") == [
        "app.kubernetes.io/managed-by=metaflow-kubernetes-ext",
        "metaflow.org/flow=MyFlow",
        "metaflow.org/run-id=12",
        "metaflow.org/step=train",
        "team=a",
    ]
