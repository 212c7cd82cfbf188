"""Images, volumes and logs."""

from __future__ import annotations

import asyncio
import datetime
from pathlib import Path
from typing import Any

import pytest

from metaflow_devcluster.api.agent import LogOptions
from metaflow_devcluster.node.images import image_problem
from metaflow_devcluster.node.logs import read_file, tail
from metaflow_devcluster.node.volumes import Mount, container_mounts, make_volumes, rewritten

NOW = datetime.datetime(2030, 1, 1, 0, 1, tzinfo=datetime.timezone.utc)
LOG = b"""2030-01-01T00:00:10.000000000Z stdout F one
2030-01-01T00:00:30.000000000Z stdout P tw
2030-01-01T00:00:30.500000000Z stdout F o
2030-01-01T00:00:50.000000000Z stdout P three
"""


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("python:3.11", ""),
        ("x", ""),
        ("123.dkr.ecr.us-west-2.amazonaws.com/team/app:v1.2", ""),
        ("localhost:5000/app@sha256:" + "0" * 64, ""),
        ("devcluster/does-not-exist", "ErrImagePull"),
        ("devcluster/does-not-exist-either:2", "ErrImagePull"),
        ("UPPER", "InvalidImageName"),
        ("a b", "InvalidImageName"),
        ("", "InvalidImageName"),
        ("app:bad tag", "InvalidImageName"),
    ],
)
def test_image_names(image: str, reason: str) -> None:
    found = image_problem(image)
    assert (found.reason if found else "") == reason


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/metaflow_temp", "/v/temp"),
        ("/metaflow_temp/", "/v/temp/"),
        ("/metaflow_temp/a/b", "/v/temp/a/b"),
        ("/metaflow_temperature", "/metaflow_temperature"),
        ("say /metaflow_temp", "say /metaflow_temp"),
        ("/data/x", "/data/x"),
        ("/data/deep/x", "/v/deep/x"),
    ],
)
def test_paths_below_a_mount_are_rewritten(value: str, expected: str) -> None:
    mounts = [
        Mount(volume="t", path="/metaflow_temp", source="/v/temp", is_bound=False),
        Mount(volume="d", path="/data", source="/v/data", is_bound=True),
        Mount(volume="e", path="/data/deep", source="/v/deep", is_bound=False),
    ]
    assert rewritten(value, mounts) == expected


def test_volumes_hold_what_they_are_made_of(tmp_path: Path) -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a": "b"}},
        "spec": {
            "volumes": [
                {"name": "empty", "emptyDir": {}},
                {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "deep/file"}]}},
                {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                {"name": "host", "hostPath": {"path": str(tmp_path)}},
                {"name": "claim", "persistentVolumeClaim": {"claimName": "data"}},
            ]
        },
    }
    config: dict[str, Any] = {"data": {"k": "v", "other": "w"}}
    found = make_volumes(pod, tmp_path / "pod", tmp_path / "claims", lambda *_: config)
    assert found["empty"].is_dir()
    assert [path.name for path in found["config"].rglob("*")] == ["deep", "file"]
    assert (found["config"] / "deep/file").read_text() == "v"
    assert (found["down"] / "labels").read_text() == 'a="b"'
    assert found["host"] == tmp_path
    assert found["claim"] == tmp_path / "claims/ns/data"
    (mount,) = container_mounts({"volumeMounts": [{"name": "empty", "mountPath": "/nowhere"}]}, found, can_bind=True)
    assert (mount.source, mount.is_bound) == (str(found["empty"]), False)


def read(path: Path, **options: Any) -> str:
    async def collect() -> bytes:
        pieces = read_file(path, LogOptions(container="main", **options), NOW, lambda: True)
        return b"".join([piece async for piece in pieces])

    return asyncio.run(collect()).decode()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, "one\ntwo\nthree", id="all"),
        pytest.param({"tail_lines": 1}, "three", id="last line"),
        pytest.param({"tail_lines": 2}, "two\nthree", id="last two"),
        pytest.param({"tail_lines": 0}, "", id="none"),
        pytest.param({"since_seconds": 40}, "two\nthree", id="since seconds"),
        pytest.param({"since_time": "2030-01-01T00:00:45Z"}, "three", id="since a time"),
        pytest.param({"limit_bytes": 5}, "one\nt", id="bytes"),
        pytest.param({"tail_lines": 1, "timestamps": True}, "2030-01-01T00:00:50.000000000Z three", id="time stamps"),
        pytest.param({"follow": True}, "one\ntwo\nthree", id="follow to the end"),
    ],
)
def test_logs(tmp_path: Path, options: dict[str, Any], expected: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(LOG)
    assert read(path, **options) == expected


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(LOG)
    assert tail(tmp_path / "log") == "one\ntwo\nthree"
    assert tail(tmp_path / "none") == ""
