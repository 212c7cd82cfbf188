"""Commands in containers over a websocket: the channels of v4 and v5, and the one command that is intercepted.

Clients stop a pod by running `killall5` in it. On a node whose containers are processes of the user, that would
stop everything the user runs, so it is never run: the node signals the processes of the pod instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import signal
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from aiohttp import WSMsgType, web

from .. import errors
from ..errors import ApiError
from .agent import NodeAgent, Process
from .context import Api, Request, encode
from .pod_logs import container_of, status_of
from .requests import Target, is_true

Object = dict[str, Any]
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_SHELLS = ("sh", "bash", "dash", "ash")


def intercepted_signal(command: Sequence[str]) -> int | None:
    """The signal that a command would send to every process, None when it is another command."""
    words = list(command)
    if len(words) == 3 and PurePosixPath(words[0]).name in _SHELLS and words[1].startswith("-") and "c" in words[1]:
        try:
            words = shlex.split(words[2])
        except ValueError:
            return None
    if not words:
        return None
    program, arguments = PurePosixPath(words[0]).name, words[1:]
    if program == "killall5":
        return next((number for word in arguments if (number := _signal_number(word)) is not None), signal.SIGTERM)
    if program == "kill" and arguments and arguments[-1] in ("-1", "1", "0"):
        return next((n for word in arguments[:-1] if (n := _signal_number(word)) is not None), signal.SIGTERM)
    return None


def _signal_number(word: str) -> int | None:
    name = word.lstrip("-").removeprefix("SIG")
    if not word.startswith("-") or not name:
        return None
    if name.isdigit():
        return int(name)
    found = getattr(signal, f"SIG{name.upper()}", None)
    return int(found) if found is not None else None


def exit_status(code: int) -> Object:
    """The Status that channel 3 ends with."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    message = f"command terminated with non-zero exit code: exit status {code}"
    causes = [{"reason": "ExitCode", "message": str(code)}]
    return {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "NonZeroExitCode",
        "details": {"causes": causes},
    }


def _checked(api: Api, target: Target, request: Request) -> tuple[Object, str, NodeAgent]:
    pod = api.store.get("pods", target.namespace, target.name)
    container = container_of(pod, request.query.get("container", ""))
    if not request.values("command"):
        raise errors.bad_request("you must specify at least 1 command for the container")
    phase = (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        raise errors.bad_request(f"cannot exec into a container in a completed pod; current phase is {phase}")
    if not pod["spec"].get("nodeName"):
        raise errors.bad_request(f"pod {target.name} does not have a host assigned")
    if "running" not in ((status_of(pod, container) or {}).get("state") or {}):
        text = f'error executing command in container: container not found ("{container}")'
        raise ApiError(500, "InternalError", f"Internal error occurred: {text}")
    if api.agent is None:
        raise ApiError(500, "InternalError", f"no node agent answers for node {pod['spec']['nodeName']}")
    return pod, container, api.agent


async def pod_exec(api: Api, target: Target, request: Request, raw: web.BaseRequest) -> web.StreamResponse:
    """Serve one exec request; refusals come before the websocket is opened."""
    pod, container, agent = _checked(api, target, request)
    if raw.headers.get("Upgrade", "").lower() != "websocket":
        raise errors.bad_request("Upgrade request required")
    offered = [name.strip() for name in raw.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if offered != [""] and not set(offered) & set(PROTOCOLS):
        raise ApiError(403, "Forbidden", f"unable to upgrade: none of the protocols {offered} is supported")
    socket = web.WebSocketResponse(protocols=PROTOCOLS, heartbeat=30)
    await socket.prepare(raw)
    command = request.values("command")
    number = intercepted_signal(command)
    try:
        if number is not None:
            agent.signal(pod, number)
            await _end(socket, exit_status(0))
        else:
            wants_input = is_true(request.query.get("stdin"))
            process = await agent.start(pod, container, command, stdin=wants_input)
            await _converse(socket, process, wants_input=wants_input)
    except ApiError as error:
        await _end(socket, error.status())
    return socket


async def _converse(socket: web.WebSocketResponse, process: Process, *, wants_input: bool) -> None:
    reader = asyncio.create_task(_feed(socket, process, wants_input=wants_input))
    is_over = False
    try:
        while (piece := await process.read()) is not None:
            stream, data = piece
            channel = STDOUT if stream == "stdout" else STDERR
            await socket.send_bytes(bytes((channel,)) + data)
        code = await process.wait()
        is_over = True
        await _cancelled(reader)
        await _end(socket, exit_status(code))
    except (ConnectionResetError, RuntimeError):
        pass
    finally:
        reader.cancel()
        if not is_over:
            process.kill()


async def _cancelled(task: asyncio.Task[None]) -> None:
    """End the reader before the socket is closed: a process that has ended must not be killed by its number."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def _feed(socket: web.WebSocketResponse, process: Process, *, wants_input: bool) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == STDIN and wants_input and data:
            await process.write(data)
        elif channel == CLOSE and data[:1] == bytes((STDIN,)):
            await process.write(b"")
    process.kill()  # only a client that has left brings us here


async def _end(socket: web.WebSocketResponse, status: Object) -> None:
    await socket.send_bytes(bytes((STATUS,)) + encode(status))
    await socket.close()
