"""Which process follows a workload, written on the workload, and whether that process is still there.

Only a process of this machine can be looked at; of any other the answer is that nobody knows.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

RUNNING, GONE, UNKNOWN = "running", "gone", "unknown"


@dataclass(frozen=True)
class Client:
    """A process. `boot`, `machine` and `processes` (the namespace of process ids) are "" where the system has no such thing."""

    host: str
    machine: str
    boot: str
    processes: str
    pid: int
    started: str  # tells it from a later one of the same id

    def as_json(self) -> dict[str, str | int]:
        return asdict(self)


def this_process() -> Client:
    pid = os.getpid()
    return Client(
        host=platform.node(),
        machine=_read("/etc/machine-id"),
        boot=_read("/proc/sys/kernel/random/boot_id"),
        processes=_namespace(),
        pid=pid,
        started=started(pid),
    )


def of_json(stored: object) -> Client | None:
    """None for what is no client."""
    if not isinstance(stored, Mapping):
        return None
    texts = {key: str(stored.get(key) or "") for key in ("host", "machine", "boot", "processes", "started")}
    pid = stored.get("pid")
    return Client(pid=pid, **texts) if texts["host"] and isinstance(pid, int) else None


def state(client: Client | None, here: Client, started_there: str) -> str:
    """RUNNING, GONE or UNKNOWN. `started_there` is when the process with the client's id started on this machine; "" if none.

    A machine that has started anew since has none of its old processes.
    """
    if client is None or client.host != here.host:
        return UNKNOWN
    if client.boot != here.boot:
        return GONE if client.machine and client.machine == here.machine else UNKNOWN
    if client.processes != here.processes:
        return UNKNOWN
    return RUNNING if client.started and client.started == started_there else GONE


def started(pid: int) -> str:
    """When the process started, as the system writes it; "" when there is no such process, or only its remains (zombie)."""
    if os.path.exists("/proc/self/stat"):
        fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
        return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""
    told = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)],
        env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    return "" if told.startswith("Z") else told.partition(" ")[2].strip()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
