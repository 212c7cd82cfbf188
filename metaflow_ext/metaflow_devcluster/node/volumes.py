"""Volumes: made as directories, and seen by a process as far as that is possible without mounting anything.

As root on Linux a container gets a mount namespace of its own, and a volume is bound to every mount path that exists
on this machine. Everywhere else, and for paths that do not exist, environment variables under the mount path are
rewritten to the directory (`environment`), and an Event says so.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .environment import ConfigError, Reader, field_value, object_data

Object = dict[str, Any]
SERVICE_ACCOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, kw_only=True)
class Mount:
    """Where a container wants a volume, and where the volume really is; `is_bound` when it can be mounted there."""

    volume: str
    path: str
    source: str
    is_bound: bool


def make_volumes(pod: Object, directory: Path, claims: Path, read: Reader) -> dict[str, Path]:
    """Create the volumes of a pod below its directory; ConfigError names what is missing."""
    found = {}
    for volume in pod["spec"].get("volumes") or []:
        name = volume["name"]
        if volume.get("hostPath"):
            found[name] = Path(volume["hostPath"]["path"])
            if volume["hostPath"].get("type") == "DirectoryOrCreate":
                found[name].mkdir(parents=True, exist_ok=True)
            continue
        if volume.get("persistentVolumeClaim"):
            found[name] = claims / pod["metadata"]["namespace"] / volume["persistentVolumeClaim"]["claimName"]
            found[name].mkdir(parents=True, exist_ok=True)
            continue
        found[name] = directory / name
        found[name].mkdir(parents=True, exist_ok=True)
        for path, content in _files(pod, volume, read).items():
            target = found[name] / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    return found


def _files(pod: Object, volume: Object, read: Reader) -> dict[str, bytes]:
    if volume.get("projected"):
        files: dict[str, bytes] = {}
        for source in volume["projected"].get("sources") or []:
            files.update(_source_files(pod, source, read))
        return files
    return _source_files(pod, volume, read)


def _source_files(pod: Object, source: Object, read: Reader) -> dict[str, bytes]:
    if source.get("downwardAPI"):
        items = source["downwardAPI"].get("items") or []
        fields = [item for item in items if item.get("fieldRef")]
        return {item["path"]: field_value(pod, item["fieldRef"]["fieldPath"]).encode() for item in fields}
    for key, resource, name_key in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
        ref = source.get(key)
        if ref:
            name = ref.get(name_key) or ref.get("name")
            obj = read(resource, name)
            if obj is None and not ref.get("optional"):
                raise ConfigError(f'{key.lower()} "{name}" not found')
            data = object_data(resource, obj or {})
            items = ref.get("items")
            if not items:
                return data
            return {item["path"]: data[item["key"]] for item in items if item["key"] in data}
    return {}


def container_mounts(container: Object, volumes: dict[str, Path], *, can_bind: bool) -> list[Mount]:
    """The mounts of a container, the service account's token left out: it opens nothing here."""
    found = []
    for mount in container.get("volumeMounts") or []:
        path = mount["mountPath"]
        if path == SERVICE_ACCOUNT_PATH or mount["name"] not in volumes:
            continue
        source = volumes[mount["name"]]
        if mount.get("subPath"):
            source = source / mount["subPath"]
            if not source.exists():
                source.mkdir(parents=True)
        is_bound = can_bind and os.path.isdir(path) == source.is_dir() and os.path.exists(path)
        found.append(Mount(volume=mount["name"], path=path, source=str(source), is_bound=is_bound))
    return found


def rewritten(value: str, mounts: list[Mount]) -> str:
    """A path under a mount that could not be made becomes the path in the volume."""
    for mount in sorted(mounts, key=lambda mount: len(mount.path), reverse=True):
        base = mount.path.rstrip("/")
        if not mount.is_bound and (value == base or value == base + "/" or value.startswith(base + "/")):
            return mount.source + value[len(base) :]
    return value


def remove(directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
