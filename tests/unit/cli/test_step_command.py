"""What a step process decides before it launches anything."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cli.step_command import max_restarts
from metaflow_extensions.kubernetes_ext.decorators.settings import Settings
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec


def retry(**attributes: Any) -> Any:
    return SimpleNamespace(name="retry", attributes=attributes)


@pytest.mark.parametrize(
    ("given", "decorators", "expected"),
    [
        pytest.param(None, [], 5, id="the setting"),
        pytest.param("2", [], 2, id="the attribute, as the command line has it"),
        pytest.param("0", [], 0, id="never"),
        pytest.param(None, [retry(times="3")], 5, id="@retry counts apart"),
        pytest.param(None, [retry(times="0")], 0, id="a step that must not run twice"),
        pytest.param("1", [retry(times="0")], 1, id="unless it is asked for"),
    ],
)
def test_how_often_a_step_starts_again(given: str | None, decorators: list[Any], expected: int) -> None:
    assert max_restarts({"max_restarts": given}, Settings(max_restarts=5), decorators) == expected


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="max_restarts"):
        max_restarts({"max_restarts": "often"}, Settings(), [])
