"""Starting containers: the node's end of a shim."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SHIM = Path(__file__).with_name("shim.py")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a shim is to run. With `log` the output goes there; else `stdin`, `stdout` and `stderr` are inherited."""

    command: list[str]
    env: dict[str, str]
    cwd: str
    log: str | None = None
    memory: int | None = None
    hostname: str = ""
    mounts: list[tuple[str, str]] = field(default_factory=list)
    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None


@dataclass(frozen=True)
class End:
    """How a container's main process ended; `failure` says why it could not even start."""

    code: int
    signal: int = 0
    out_of_memory: bool = False
    failure: str = ""


_running: set[Shim] = set()  # of this process; each leaves when it has ended


async def end_all(seconds: float) -> None:
    """Kill what still runs, containers and commands beside them, and wait up to `seconds` until it has ended."""
    shims = list(_running)
    for shim in shims:
        shim.kill()
    if shims:
        await asyncio.wait([shim.ended for shim in shims], timeout=seconds)


class Shim:
    """A running shim; `started` gives the pid of the container's main process, `ended` how that ended."""

    def __init__(self, launch: Launch) -> None:
        loop = asyncio.get_running_loop()
        self.launch = launch
        self.started: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[End] = loop.create_future()
        inherited = [fd for fd in (launch.stdin, launch.stdout, launch.stderr) if fd is not None]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SHIM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=inherited,
            start_new_session=True,
            cwd="/",
            env={"PATH": os.defpath},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._pending = b""
        os.set_blocking(self._stdout, False)
        _running.add(self)
        loop.add_reader(self._stdout, self._read)
        body = json.dumps(asdict(launch)).encode()
        self._send(b"%08d" % len(body) + body)

    @property
    def pid(self) -> int:
        return self._process.pid

    def terminate(self) -> None:
        """SIGTERM to the container's main process only, as a kubelet does."""
        self._send(b"TERM\n")

    def kill(self) -> None:
        """SIGKILL to every process of the container."""
        self._send(b"KILL\n")

    def signal(self, number: int) -> None:
        """Signal every process of the container."""
        self._send(b"SIGNAL %d\n" % number)

    def _send(self, data: bytes) -> None:
        """The shim reads at once, so that even a large environment is written without delay."""
        if self.ended.done():
            return
        try:
            while data:
                data = data[os.write(self._stdin, data) :]
        except BrokenPipeError:
            return

    def _read(self) -> None:
        try:
            data = os.read(self._stdout, 65536)
        except BlockingIOError:
            return
        *lines, self._pending = (self._pending + data).split(b"\n")
        end = None
        for line in lines:
            end = self._note(json.loads(line)) or end
        if end or not data:
            self._close(end or End(137, signal=9))  # without a report the shim itself was killed

    def _note(self, fields: dict[str, Any]) -> End | None:
        """One report of the shim; the last one says how the container ended."""
        if "pid" in fields:
            self.started.set_result(fields["pid"])
            return None
        if "failed" in fields:
            return End(128, failure=start_failure(self.launch, *fields["failed"]))
        return End(fields["code"], fields["signal"], fields["oom"])

    def _close(self, end: End) -> None:
        """The shim ends at once after its last report, so this does not wait."""
        asyncio.get_running_loop().remove_reader(self._stdout)
        self._process.wait()
        _running.discard(self)
        if not self.started.done():
            self.started.set_result(0)
        self.ended.set_result(end)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def start_failure(launch: Launch, number: int, text: str, path: str) -> str:
    """The sentence of a container runtime for a command that can't be executed."""
    if path == launch.cwd:
        what = f'cwd: chdir to cwd ("{launch.cwd}") set in config.json failed: {text.lower()}'
    elif number == 2 and "/" not in launch.command[0]:
        what = f'exec: "{launch.command[0]}": executable file not found in $PATH'
    else:
        what = f'exec: "{launch.command[0]}": stat {launch.command[0]}: {text.lower()}'
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
        f"unable to start container process: {what}: unknown"
    )
