"""Volumes: every mount path is one, and is used once."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.storage import Storage


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"shared_memory": "0"}, "at least one byte", id="shared memory of nothing"),
        pytest.param({"shared_memory": ""}, "not a Kubernetes quantity", id="shared memory empty"),
        pytest.param({"tmpfs_path": "/t", "tmpfs_size": "500m"}, "at least one byte", id="tmpfs in thousandths"),
        pytest.param({"tmpfs_size": "1Gi"}, "no path", id="tmpfs without a path"),
        pytest.param({"tmpfs_path": "t"}, "absolute", id="relative path"),
        pytest.param({"tmpfs_path": "/"}, "not '/'", id="root"),
        pytest.param({"tmpfs_path": "/a/.."}, "not '/'", id="root in disguise"),
        pytest.param({"claims": {"c": "/a:b"}}, "no colon", id="colon"),
        pytest.param({"claims": {"c": "/a", "d": "/a/"}}, "same path", id="twice"),
        pytest.param({"shared_memory": "1Gi", "claims": {"c": "/dev/shm"}}, "same path", id="claim over shared memory"),
        pytest.param({"tmpfs_path": "/a", "claims": {"c": "/a"}}, "same path", id="claim over tmpfs"),
        pytest.param({"claims": {"Data": "/a"}}, "persistent volume claim", id="claim's name"),
    ],
)
def test_storage_refuses(fields: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        Storage(**fields)  # type: ignore[arg-type]


def test_the_mount_paths_are_those_of_all_volumes() -> None:
    storage = Storage(shared_memory="64Mi", tmpfs_path="/tmp/x", claims={"data": "/data", "data.v2": "/data/v2"})
    assert storage.mount_paths == ("/tmp/x", "/dev/shm", "/data", "/data/v2")
