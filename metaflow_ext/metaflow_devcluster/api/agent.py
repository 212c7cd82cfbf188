"""What the API server asks of a node: logs and commands of the pods it runs. The node implements it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class LogOptions:
    """The query of a log request, as PodLogOptions names it; `since_time` is RFC 3339."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since_seconds: int | None = None
    since_time: str | None = None
    limit_bytes: int | None = None


class Process(Protocol):
    """A command started in a container."""

    async def read(self) -> tuple[str, bytes] | None:
        """The next output as ("stdout" | "stderr", bytes), None at the end."""

    async def write(self, data: bytes) -> None:
        """Feed its standard input; empty bytes close it."""

    async def wait(self) -> int:
        """Its exit code."""

    def kill(self) -> None:
        """End it; called when the client has gone."""


class NodeAgent(Protocol):
    """The pods are dicts as stored; all of it may raise ApiError."""

    def read_log(self, pod: Mapping[str, Any], options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces, each whole lines; with `follow` until the container has ended."""

    def signal(self, pod: Mapping[str, Any], signal_number: int) -> None:
        """Signal every process of the pod (what `killall5` in a container does), and only those."""

    async def start(self, pod: Mapping[str, Any], container: str, command: Sequence[str], *, stdin: bool) -> Process:
        """Run a command in the container's environment and working directory."""
