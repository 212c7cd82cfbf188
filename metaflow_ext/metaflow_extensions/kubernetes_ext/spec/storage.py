"""What a container sees beside its image's files: memory, persistent volume claims, and whatever else can be mounted."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..errors import InvalidSpec
from . import names
from .quantities import amount
from .volumes import DeviceVolume, Volume, require_mount_path

SHARED_MEMORY_PATH = "/dev/shm"


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Sizes are Kubernetes quantities; a memory volume counts against the container's memory limit."""

    shared_memory: str | None = None  # size of /dev/shm
    tmpfs_path: str | None = None  # mount path of a memory volume, None for no such volume
    tmpfs_size: str | None = None  # None: as large as the container's memory limit, or as the node's memory
    claims: Mapping[str, str] = field(default_factory=dict)  # PersistentVolumeClaim -> mount path
    volumes: tuple[Volume, ...] = ()

    def __post_init__(self) -> None:
        for size in (self.shared_memory, self.tmpfs_size):
            if size is not None and amount(size) < 1:
                raise InvalidSpec(f"The size of a memory volume must be at least one byte, not {size}.")
        if self.tmpfs_size is not None and self.tmpfs_path is None:
            raise InvalidSpec("A tmpfs has a size but no path to be mounted at.")
        for claim in self.claims:
            names.require_dns_subdomain(claim, "persistent volume claim")
        paths = self.mount_paths
        for path in paths:
            require_mount_path(path)
        if len({posixpath.normpath(path) for path in paths}) != len(paths):
            raise InvalidSpec(f"Two volumes are mounted at the same path: {', '.join(sorted(paths))}.")

    @property
    def mount_paths(self) -> tuple[str, ...]:
        """Every path something is mounted at."""
        own = (self.tmpfs_path, SHARED_MEMORY_PATH if self.shared_memory is not None else None)
        return (*(path for path in own if path is not None), *self.claims.values(), *(one.path for one in self.volumes))

    @property
    def devices(self) -> tuple[str, ...]:
        """The node's devices among them, for which a container has to be privileged."""
        return tuple(one.host_path for one in self.volumes if isinstance(one, DeviceVolume))
