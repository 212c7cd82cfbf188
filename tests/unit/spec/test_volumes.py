"""Volumes by their source: what each refuses, and what a device of the node makes of a group."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.pod import pod_template
from metaflow_extensions.kubernetes_ext.spec.storage import Storage
from metaflow_extensions.kubernetes_ext.spec.volumes import (
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyVolume,
    HostVolume,
    RankVolume,
    SecretVolume,
    Volume,
)
from tests.builders import make_container, make_group, make_spec

RDMA = Storage(volumes=(DeviceVolume(path="/dev/infiniband", host_path="/dev/infiniband"),))


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        pytest.param(ClaimVolume, {"path": "data", "claim": "data"}, "absolute", id="relative path"),
        pytest.param(ClaimVolume, {"claim": "Data"}, "persistent volume claim", id="claim"),
        pytest.param(ClaimVolume, {"claim": "data", "sub_path": "a/../b"}, "without '..'", id="sub_path goes up"),
        pytest.param(ClaimVolume, {"claim": "data", "sub_path": "/a"}, "folder within", id="sub_path is absolute"),
        pytest.param(ClaimVolume, {"claim": "data", "sub_path": ""}, "folder within", id="sub_path is empty"),
        pytest.param(RankVolume, {"size": "0"}, "at least one byte", id="nothing"),
        pytest.param(RankVolume, {"size": "much"}, "not a Kubernetes quantity", id="no quantity"),
        pytest.param(RankVolume, {"size": "1Gi", "storage_class": "Fast"}, "storage class", id="storage class"),
        pytest.param(RankVolume, {"size": "1Gi", "access_mode": "ReadWrite"}, "is one of ReadWriteOnce", id="access mode"),
        pytest.param(EmptyVolume, {"size": "-1"}, "at least one byte", id="less than nothing"),
        pytest.param(HostVolume, {"host_path": "opt"}, "absolute", id="relative host path"),
        pytest.param(HostVolume, {"host_path": "/opt/../etc"}, "without '..'", id="host path goes up"),
        pytest.param(HostVolume, {"host_path": "/opt", "type": "Folder"}, "one of DirectoryOrCreate", id="type"),
        pytest.param(DeviceVolume, {"host_path": "infiniband"}, "absolute", id="device"),
        pytest.param(DeviceVolume, {"host_path": "/dev/fuse", "sub_path": "a"}, "no folder", id="folder of a device"),
        pytest.param(ConfigVolume, {"config_map": "a/b"}, "config map", id="config map"),
        pytest.param(SecretVolume, {"secret": ""}, "secret", id="secret"),
    ],
)
def test_what_is_refused(kind: type[Volume], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        kind(**{"path": "/mnt", **fields})


def test_two_volumes_are_not_mounted_at_one_path() -> None:
    with pytest.raises(InvalidSpec, match="same path"):
        Storage(claims={"data": "/data"}, volumes=(EmptyVolume(path="/data/"),))


def test_a_device_makes_its_group_privileged_and_that_is_said() -> None:
    spec = make_spec(groups=(make_group("control"), make_group("worker", 2, storage=RDMA)))
    privileged = [
        pod_template(spec, group)["spec"]["containers"][0].get("securityContext", {}).get("privileged") for group in spec.groups
    ]
    assert privileged == [None, True]
    assert spec.cautions == (
        "The ranks of group worker are privileged containers, as the node's devices /dev/infiniband need.",
    )


def test_nothing_is_said_without_devices() -> None:
    assert make_spec(2).cautions == ()


def test_a_device_where_privileges_are_ruled_out_is_refused() -> None:
    container = make_container(security_context={"allowPrivilegeEscalation": False})
    with pytest.raises(InvalidSpec, match="can't be False with privileged"):
        make_group(container=container, storage=RDMA)


@pytest.mark.parametrize("network", ["", "a/", "/a", "a@", "A", "a/b/c", "a@longer-than-linux-takes"])
def test_a_network_that_is_none(network: str) -> None:
    with pytest.raises(InvalidSpec, match="etwork"):
        make_group(networks=(network,))
