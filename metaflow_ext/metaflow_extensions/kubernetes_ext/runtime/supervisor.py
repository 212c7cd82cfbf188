"""The process that cleans up after step processes that were killed: one for each run, in a session of its own.

A step process that ends without having released its workload leaves it to us: it is deleted, unless the run's own process was
killed with it. Then the workloads go on (`kubernetes attach` and `resume` find them), step processes that still live are told to
detach, and this process ends. It ends in any case when the run has, once nothing is left to delete.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable

from ..spec import labels
from .resources import kubectl_delete
from .supervision import DETACH, FINISHED, HEARD, Owned

KILLED_TOGETHER_SECONDS = 1.0  # a run and its step processes that are killed together end within this
LAST_STEPS_SECONDS = 3.0  # after a run's end its step processes, which were killed, are gone within this
LOOKS = (0.0, 2.0, 5.0, 10.0)  # a request to create may be on its way when its sender is killed: look again after these
PATIENCE = 3600.0  # seconds that an unreachable server is tried for

Delete = Callable[[Owned], bool]  # whether there was something to delete; raises ClusterError


class Supervisor:
    """`delete` is called in threads."""

    def __init__(self, delete: Delete, looks: tuple[float, ...] = LOOKS) -> None:
        self._delete = delete
        self._looks = looks
        self._steps: dict[int, tuple[asyncio.StreamWriter, list[Owned]]] = {}
        self._numbers = itertools.count()
        self._is_finished = False
        self._run_is_gone = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()
        self._tell: Callable[[str], None] = lambda text: None

    async def run(self, run: socket.socket, listening: socket.socket) -> None:
        """Returns when the run has ended and nothing is left to do."""
        server = await asyncio.start_unix_server(self._step, sock=listening)
        reader, writer = await asyncio.open_connection(sock=run)
        self._tell = lambda text: writer.write(text.encode() + b"\n")
        self._is_finished = (await _line(reader)) == FINISHED
        self._run_is_gone.set()
        server.close()
        await (self._last_steps() if self._is_finished else self._detach())
        while self._work:
            await asyncio.wait(self._work)
        await _closed(writer)

    async def _last_steps(self) -> None:
        give_up_at = time.monotonic() + LAST_STEPS_SECONDS
        while self._steps and time.monotonic() < give_up_at:
            await asyncio.sleep(0.02)

    async def _detach(self) -> None:
        for step, _ in list(self._steps.values()):
            step.write(DETACH.encode() + b"\n")
            await _closed(step)

    async def _step(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number, mine = next(self._numbers), list[Owned]()
        self._steps[number] = (writer, mine)
        try:
            while line := await _line(reader):
                message = json.loads(line)
                if "own" in message:
                    mine.append(Owned(**message["own"]))
                    writer.write(HEARD.encode() + b"\n")
                elif "release" in message:
                    mine.clear()
        finally:
            if mine:
                task = asyncio.get_running_loop().create_task(self._clean(list(mine)))
                self._work.add(task)
                task.add_done_callback(self._work.discard)
            del self._steps[number]
            await _closed(writer)

    async def _clean(self, left: list[Owned]) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._run_is_gone.wait(), KILLED_TOGETHER_SECONDS)
        if self._run_is_gone.is_set() and not self._is_finished:
            return
        began = time.monotonic()
        found: set[Owned] = set()
        for look in self._looks:
            await asyncio.sleep(max(0.0, began + look - time.monotonic()))
            for workload in left:
                if workload not in found and await self._delete_one(workload):
                    found.add(workload)
            if any(not one.is_beside for one in found):
                return

    async def _delete_one(self, workload: Owned) -> bool:
        from ..errors import ClusterError

        try:
            was_there = await asyncio.get_running_loop().run_in_executor(None, self._delete, workload)
        except ClusterError as error:
            command = kubectl_delete(workload.resource, workload.namespace, workload.name)
            self._tell(f"{workload.kind} {workload.name} could not be deleted: {error} When this is solved, run: {command}")
            return True
        if was_there and not workload.is_beside:
            self._tell(f"{workload.kind} {workload.name} deleted with its pods: its step process had been killed.")
        return was_there


async def _line(reader: asyncio.StreamReader) -> str:
    """The next line, "" at the end."""
    try:
        return (await reader.readline()).decode().strip()
    except (OSError, ValueError):
        return ""


async def _closed(writer: asyncio.StreamWriter) -> None:
    """Closed, after what was written has been sent."""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def delete(workload: Owned, patience: float = PATIENCE) -> bool:
    """Delete it, if it is there and of that submission."""
    from ..cluster.client import KubernetesClient  # only now: most supervisors never need it
    from ..cluster.retry import retrying
    from .submit import withdraw

    client = KubernetesClient()
    try:
        return retrying(
            lambda: withdraw(
                client, workload.resource,
                {"metadata": {"name": workload.name, "annotations": {labels.SUBMISSION: workload.submission}}},
                namespace=workload.namespace,
            ),
            patience=patience, sleep=time.sleep, monotonic=time.monotonic,
        )  # fmt: skip
    finally:
        client.close()


def main(run: str, listening: str, folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with the run
    try:
        asyncio.run(Supervisor(delete).run(socket.socket(fileno=int(run)), socket.socket(fileno=int(listening))))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
