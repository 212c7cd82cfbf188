"""The clusters. Every test has a namespace of its own; the development cluster and the clients live as long as the session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract import places

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without a real cluster around us (tests/cluster/run) its tests are not for this run."""
    if os.environ.get(f"{places.CLUSTER}NETNS"):
        return
    left_out = [item for item in items if _HERE in item.path.parents and item.get_closest_marker("real")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]


@pytest.fixture(scope="session")
def devcluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[places.Server]:
    """A development cluster as its users start it, in a home of its own."""
    home = tmp_path_factory.mktemp("devcluster")
    tool = [sys.executable, "-m", "metaflow_devcluster"]
    environment = {**os.environ, "METAFLOW_DEVCLUSTER_HOME": str(home)}
    up = subprocess.run([*tool, "up"], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert up.returncode == 0, up.stdout + up.stderr
    config = home / "kubeconfig"
    try:
        with places.server(
            "devcluster", config, config, image="python:3.11", missing_image="devcluster/does-not-exist:1"
        ) as found:
            yield found
    finally:
        subprocess.run([*tool, "down"], env=environment, capture_output=True, timeout=60, check=False)


@pytest.fixture(scope="session")
def real() -> Iterator[places.Server]:
    with places.real_server() as found:
        yield found


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Iterator[places.Place]:
    """The cluster that the test is parametrised with, with a namespace for this test alone."""
    if request.param == "fake":
        yield places.fake_place()
        return
    with request.getfixturevalue(request.param).place() as found:
        yield found
