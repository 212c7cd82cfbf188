"""Options and fixtures of every suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="also what takes hours: run for a release, or on suspicion")
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing with them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the real cluster are run inside of it, by tests/cluster/run; elsewhere they are not for this run.

    The longest come first, so that at the end no core waits for one of them; crowds last, since nothing beside them gets a turn.
    """
    items.sort(key=lambda item: (item.get_closest_marker("crowd") is not None, item.get_closest_marker("long") is None))
    unwanted = []
    if "METAFLOW_KUBERNETES_EXT_CLUSTER_NETNS" not in os.environ:
        unwanted.append("real")
    if not config.getoption("--exhaustive"):
        unwanted.append("exhaustive")
    left_out = [item for item in items if any(map(item.get_closest_marker, unwanted))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: the text equals the file golden/<name> beside the test; `--update-golden` writes it."""
    folder = Path(request.path).parent / "golden"

    def check(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} is missing: run pytest with --update-golden and read what it wrote"
        assert path.read_text(encoding="utf-8") == text

    return check
