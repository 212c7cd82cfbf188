"""The volumes of a pod and where its container mounts them (core/v1 Volume, VolumeMount)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ..spec import names
from ..spec.storage import SHARED_MEMORY_PATH, Storage
from ..spec.volumes import (
    ClaimVolume,
    ConfigVolume,
    DeviceVolume,
    EmptyVolume,
    HostVolume,
    RankVolume,
    SecretVolume,
    Volume,
)
from .manifest import Manifest, present

# The volume names of core Metaflow's manifests, which admission policies of its users may know.
_TMPFS_VOLUME = "tmpfs-ephemeral-volume"
_SHARED_MEMORY_VOLUME = "dhsm"
_NUMBERED = re.compile(r"volume-[0-9]+\Z")  # those of `Storage.volumes`


def volumes(storage: Storage) -> list[Manifest]:
    memory = [_memory_volume(name, size) for name, _, size in _memory(storage)]
    claims = [{"name": claim_volume_name(claim), "persistentVolumeClaim": {"claimName": claim}} for claim in storage.claims]
    others = [{"name": _numbered(number), **_source(volume)} for number, volume in enumerate(storage.volumes)]
    return memory + claims + others


def volume_mounts(storage: Storage) -> list[Manifest]:
    return [
        *({"name": name, "mountPath": path} for name, path, _ in _memory(storage)),
        *({"name": claim_volume_name(claim), "mountPath": path} for claim, path in storage.claims.items()),
        *(_mount(_numbered(number), volume) for number, volume in enumerate(storage.volumes)),
    ]


def claim_volume_name(claim: str) -> str:
    """The claim's own name as in core Metaflow, where it can be a volume's: a claim's may have dots and 253 characters."""
    if names.is_dns_label(claim) and claim not in (_TMPFS_VOLUME, _SHARED_MEMORY_VOLUME) and not _NUMBERED.match(claim):
        return claim
    return f"{names.slug(claim, names.MAX_LABEL - 9)}-{names.digest((claim,))}"


def _numbered(number: int) -> str:
    return f"volume-{number}"


def _mount(name: str, volume: Volume) -> Manifest:
    return present(name=name, mountPath=volume.path, readOnly=volume.read_only or None, subPathExpr=volume.sub_path)


def _claim(volume: ClaimVolume) -> Manifest:
    return {"persistentVolumeClaim": present(claimName=volume.claim, readOnly=volume.read_only or None)}


def _of_rank(volume: RankVolume) -> Manifest:
    claim = present(
        accessModes=[volume.access_mode],
        storageClassName=volume.storage_class,
        resources={"requests": {"storage": volume.size}},
    )
    return {"ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


def _empty(volume: EmptyVolume) -> Manifest:
    return {"emptyDir": present(medium="Memory" if volume.in_memory else None, sizeLimit=volume.size)}


_SOURCES: Mapping[type[Volume], Callable[[Any], Manifest]] = {
    ClaimVolume: _claim,
    RankVolume: _of_rank,
    EmptyVolume: _empty,
    HostVolume: lambda volume: {"hostPath": present(path=volume.host_path, type=volume.type or None)},
    DeviceVolume: lambda volume: {"hostPath": {"path": volume.host_path}},
    ConfigVolume: lambda volume: {"configMap": {"name": volume.config_map}},
    SecretVolume: lambda volume: {"secret": {"secretName": volume.secret}},
}


def _source(volume: Volume) -> Manifest:
    return _SOURCES[type(volume)](volume)


def _memory(storage: Storage) -> list[tuple[str, str, str | None]]:
    """(volume name, mount path, size) of every memory volume."""
    found: list[tuple[str, str, str | None]] = []
    if storage.tmpfs_path is not None:
        found.append((_TMPFS_VOLUME, storage.tmpfs_path, storage.tmpfs_size))
    if storage.shared_memory is not None:
        found.append((_SHARED_MEMORY_VOLUME, SHARED_MEMORY_PATH, storage.shared_memory))
    return found


def _memory_volume(name: str, size: str | None) -> Manifest:
    return {"name": name, "emptyDir": {"medium": "Memory", **present(sizeLimit=size)}}
