"""What a container sees beside its image's files: memory volumes and persistent volume claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping

from ..errors import InvalidSpec
from . import names
from .resources import amount


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Sizes are Kubernetes quantities; a memory volume counts against the container's memory limit."""

    shared_memory: str | None = None  # size of /dev/shm
    tmpfs_path: str | None = None  # mount path of a memory volume, None for no such volume
    tmpfs_size: str | None = None
    claims: Mapping[str, str] = field(default_factory=dict)  # PersistentVolumeClaim -> mount path

    def __post_init__(self) -> None:
        for size in (self.shared_memory, self.tmpfs_size):
            if size is not None and amount(size) <= 0:
                raise InvalidSpec(f"The size of a memory volume must be greater than 0, not {size}.")
        paths = [path for path in (self.tmpfs_path, *self.claims.values()) if path is not None]
        if self.shared_memory:
            paths.append("/dev/shm")
        for path in paths:
            if not path.startswith("/") or ":" in path:
                raise InvalidSpec(f"A mount path is absolute and has no colon, not {path!r}.")
        if len(set(paths)) != len(paths):
            raise InvalidSpec(f"Two volumes are mounted at the same path: {', '.join(sorted(paths))}.")
        for claim in self.claims:
            names.require_dns_subdomain(claim, "persistent volume claim")
