"""Volumes beside the two of memory and the claims that @kubernetes names: one class for each source, with where it is mounted."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from ..errors import InvalidSpec
from . import names
from .quantities import amount

_HOST_TYPES = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def require_mount_path(path: object) -> None:
    if not isinstance(path, str) or not path.startswith("/") or ":" in path or posixpath.normpath(path) in ("/", "//"):
        raise InvalidSpec(f"A mount path is absolute, has no colon and is not '/'; {path!r} is not one.")


@dataclass(frozen=True, kw_only=True)
class Volume:
    """`sub_path`: only this folder of it, in which "$(NAME)" is a variable of the container: "$(JOB_COMPLETION_INDEX)" gives each
    rank of a group its own."""

    path: str  # where it is mounted
    read_only: bool = False
    sub_path: str | None = None

    def __post_init__(self) -> None:
        require_mount_path(self.path)
        if self.sub_path is not None:
            parts = self.sub_path.split("/")
            if not self.sub_path or self.sub_path.startswith("/") or ".." in parts:
                raise InvalidSpec(f"A sub_path is a folder within a volume, without '..', not {self.sub_path!r}.")


@dataclass(frozen=True, kw_only=True)
class ClaimVolume(Volume):
    """A PersistentVolumeClaim, which all ranks share."""

    claim: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.require_dns_subdomain(self.claim, "persistent volume claim")


@dataclass(frozen=True, kw_only=True)
class RankVolume(Volume):
    """A claim of each rank's own, made and removed with its pod (a generic ephemeral volume)."""

    size: str  # quantity
    storage_class: str | None = None  # None: the cluster's default
    access_mode: str = "ReadWriteOnce"

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_size(self.size)
        if self.storage_class is not None:
            names.require_dns_subdomain(self.storage_class, "storage class")
        if self.access_mode not in _ACCESS_MODES:
            raise InvalidSpec(f"The access mode of a volume is one of {', '.join(_ACCESS_MODES)}, not {self.access_mode!r}.")


@dataclass(frozen=True, kw_only=True)
class EmptyVolume(Volume):
    """An empty folder of the pod's own: of its node's disk, or of its memory (tmpfs)."""

    size: str | None = None  # the limit, a quantity
    in_memory: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size is not None:
            _require_size(self.size)


@dataclass(frozen=True, kw_only=True)
class HostVolume(Volume):
    """A file or folder of the node."""

    host_path: str
    type: str = ""  # core/v1 HostPathType; "" looks at nothing

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_host_path(self.host_path)
        if self.type not in _HOST_TYPES:
            raise InvalidSpec(f"The type of a host path is one of {', '.join(filter(None, _HOST_TYPES))}, not {self.type!r}.")


@dataclass(frozen=True, kw_only=True)
class DeviceVolume(Volume):
    """A device of the node. Kubernetes lets only privileged containers use one: the ranks of such a group are privileged."""

    host_path: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_host_path(self.host_path)
        if self.sub_path is not None:
            raise InvalidSpec(f"Device {self.host_path} is no folder: it has no sub_path.")


@dataclass(frozen=True, kw_only=True)
class ConfigVolume(Volume):
    """The keys of a ConfigMap, as files."""

    config_map: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.require_dns_subdomain(self.config_map, "config map")


@dataclass(frozen=True, kw_only=True)
class SecretVolume(Volume):
    """The keys of a Secret, as files."""

    secret: str

    def __post_init__(self) -> None:
        super().__post_init__()
        names.require_dns_subdomain(self.secret, "secret")


def _require_size(size: str) -> None:
    if amount(size) < 1:
        raise InvalidSpec(f"The size of a volume must be at least one byte, not {size}.")


def _require_host_path(path: object) -> None:
    if not isinstance(path, str) or not path.startswith("/") or ".." in path.split("/"):
        raise InvalidSpec(f"A path of the node is absolute and without '..'; {path!r} is not one.")
