"""Commands that are run in a container beside its main process (`kubectl exec`)."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from .process import Launch, Shim

if TYPE_CHECKING:
    from .pod import RunningPod


class Command:
    """A process with its pipes; ends with the pod at the latest."""

    def __init__(self, shim: Shim, stdin: int | None, outputs: dict[int, str]) -> None:
        self._shim, self._stdin = shim, stdin
        self._outputs = outputs
        self._queue: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        for fd in outputs:
            os.set_blocking(fd, False)
            loop.add_reader(fd, self._read, fd)

    @classmethod
    def start(cls, pod: RunningPod, launch: Launch, command: list[str], *, stdin: bool) -> Command:
        """Start a command in the environment of a container."""
        output_reader, output = os.pipe()
        error_reader, error = os.pipe()
        input_reader, input_writer = os.pipe() if stdin else (None, None)
        inherited = Launch(
            command=command,
            env=launch.env,
            cwd=launch.cwd,
            hostname=launch.hostname,
            mounts=launch.mounts,
            stdin=input_reader,
            stdout=output,
            stderr=error,
        )
        shim = Shim(inherited)
        for fd in (output, error, input_reader):
            if fd is not None:
                os.close(fd)
        pod.extra.add(shim)
        shim.ended.add_done_callback(lambda _: pod.extra.discard(shim))
        return cls(shim, input_writer, {output_reader: "stdout", error_reader: "stderr"})

    async def read(self) -> tuple[str, bytes] | None:
        """The next output, None when both streams have ended."""
        if not self._outputs and self._queue.empty():
            return None
        name, data = await self._queue.get()
        return (name, data) if data else None

    async def write(self, data: bytes) -> None:
        """Feed standard input; empty bytes close it."""
        if self._stdin is None:
            return
        if not data:
            os.close(self._stdin)
            self._stdin = None
            return
        fd = self._stdin
        try:
            await asyncio.get_running_loop().run_in_executor(None, _write_all, fd, data)
        except BrokenPipeError:
            return

    async def wait(self) -> int:
        """The exit code; 127 when the command could not be started, with the reason in its error output."""
        end = await asyncio.shield(self._shim.ended)
        return 127 if end.failure else end.code

    def kill(self) -> None:
        self._shim.kill()
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        if data:
            self._queue.put_nowait((self._outputs[fd], data))
            return
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)
        del self._outputs[fd]
        if not self._outputs:
            if self._shim.ended.done() and self._shim.ended.result().failure:
                self._queue.put_nowait(("stderr", self._shim.ended.result().failure.encode() + b"\n"))
            self._queue.put_nowait(("", b""))


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
