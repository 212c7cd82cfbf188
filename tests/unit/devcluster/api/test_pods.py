"""Logs and commands: what is refused, what is passed to the node, and the command that is never run."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import aiohttp
import pytest

from metaflow_devcluster.api.agent import LogOptions
from metaflow_devcluster.api.pod_exec import exit_status, intercepted_signal
from metaflow_devcluster.api.pod_logs import log_options
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.server import Server, start_server

from .conftest import pod

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (["/sbin/killall5"], signal.SIGTERM),
        (["/bin/sh", "-c", "/sbin/killall5"], signal.SIGTERM),
        (["bash", "-lc", "killall5 -9"], signal.SIGKILL),
        (["killall5", "-INT"], signal.SIGINT),
        (["kill", "-9", "-1"], signal.SIGKILL),
        (["kill", "1"], signal.SIGTERM),
        (["sh", "-c", "kill -s TERM 1234"], None),
        (["echo", "killall5"], None),
        (["sh", "-c", "echo 'open"], None),
        ([], None),
    ],
)
def test_commands_that_would_reach_every_process_are_signals_to_the_pod(command: list[str], number: int | None) -> None:
    assert intercepted_signal(command) == number


def test_the_exit_code_is_in_the_status() -> None:
    assert exit_status(0)["status"] == "Success"
    failure = exit_status(7)
    assert failure["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]


TWO = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({}, "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"),
        ({"container": "z"}, "container z is not valid for pod p"),
        ({"container": "a", "tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"container": "a", "tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"container": "a", "sinceSeconds": "1", "sinceTime": "x"}, "at most one of `sinceTime` or `sinceSeconds`"),
    ],
)
def test_log_options_that_are_refused(query: dict[str, str], text: str) -> None:
    with pytest.raises(ApiError) as refused:
        log_options(TWO, query)
    assert text in refused.value.message


class FakeProcess:
    def __init__(self, output: list[tuple[str, bytes]], code: int) -> None:
        self.output, self.code = output, code
        self.given: list[bytes] = []
        self.is_killed = False

    async def read(self) -> tuple[str, bytes] | None:
        await asyncio.sleep(0)
        return self.output.pop(0) if self.output else None

    async def write(self, data: bytes) -> None:
        self.given.append(data)
        if not data:
            self.output.append(("stdout", b"".join(self.given)))

    async def wait(self) -> int:
        return self.code

    def kill(self) -> None:
        self.is_killed = True


class FakeAgent:
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.signals: list[int] = []
        self.options: list[LogOptions] = []
        self.commands: list[list[str]] = []

    async def _lines(self) -> AsyncIterator[bytes]:
        for line in (b"one\n", b"two\n"):
            yield line

    def read_log(self, pod: Mapping[str, Any], options: LogOptions) -> AsyncIterator[bytes]:
        self.options.append(options)
        return self._lines()

    def signal(self, pod: Mapping[str, Any], signal_number: int) -> None:
        self.signals.append(signal_number)

    async def start(self, pod: Mapping[str, Any], container: str, command: Sequence[str], *, stdin: bool) -> FakeProcess:
        self.commands.append(list(command))
        return FakeProcess([("stdout", b"out"), ("stderr", b"err")], 7)


def run_pod(server: Server, state: Object | None = None, phase: str = "Running") -> None:
    made = server.cluster.create("pods", {**pod("p"), "metadata": {"name": "p", "namespace": "default"}})
    status = {"name": "main", "state": {"running": {}} if state is None else state}

    def start(obj: Object) -> None:
        obj["spec"]["nodeName"] = "n"
        obj["status"] = {"phase": phase, "containerStatuses": [status]}

    server.store.modify("pods", "default", made["metadata"]["name"], start)


PATH = "/api/v1/namespaces/default/pods/p"


async def conversation(query: str, protocol: str = "v5.channel.k8s.io") -> tuple[list[bytes], FakeAgent]:
    agent = FakeAgent()
    server = await start_server(agent=agent)
    run_pod(server)
    url = f"{server.url}{PATH}/exec?{query}"
    try:
        async with aiohttp.ClientSession() as session, session.ws_connect(url, protocols=(protocol,)) as socket:
            return [message.data async for message in socket], agent
    finally:
        await server.stop()


def test_a_command_answers_on_its_channels_and_ends_with_its_exit_code() -> None:
    messages, agent = asyncio.run(conversation("command=sh&command=-c&command=x&stdout=1&stderr=1"))
    assert messages[:2] == [b"\x01out", b"\x02err"]
    assert messages[2][:1] == b"\x03"
    assert b'"message":"7"' in messages[2]
    assert agent.commands == [["sh", "-c", "x"]]


def test_killall5_becomes_a_signal_and_is_not_run() -> None:
    messages, agent = asyncio.run(conversation("command=/sbin/killall5", "v4.channel.k8s.io"))
    assert messages == [b'\x03{"metadata":{},"status":"Success"}']
    assert (agent.signals, agent.commands) == ([signal.SIGTERM], [])


async def request(path: str, *, state: Object | None = None, phase: str = "Running") -> tuple[int, str, FakeAgent]:
    agent = FakeAgent()
    server = await start_server(agent=agent)
    run_pod(server, state, phase)
    try:
        async with aiohttp.ClientSession() as session, session.get(server.url + path) as response:
            return response.status, await response.text(), agent
    finally:
        await server.stop()


def test_a_log_is_streamed_with_the_options_of_the_request() -> None:
    path = f"{PATH}/log?follow=true&timestamps=1&tailLines=5&sinceSeconds=9&limitBytes=3"
    code, text, agent = asyncio.run(request(path))
    assert (code, text) == (200, "one\ntwo\n")
    expected = LogOptions(container="main", follow=True, timestamps=True, tail_lines=5, since_seconds=9, limit_bytes=3)
    assert agent.options == [expected]


@pytest.mark.parametrize(
    ("path", "state", "phase", "code", "text"),
    [
        pytest.param(
            "/log",
            {"waiting": {"reason": "ContainerCreating"}},
            "Pending",
            400,
            "is waiting to start: ContainerCreating",
            id="waiting",
        ),
        pytest.param("/log", {}, "Pending", 400, "is waiting to start: ContainerCreating", id="no state yet"),
        pytest.param(
            "/log",
            {"waiting": {"reason": "ImagePullBackOff"}},
            "Pending",
            400,
            "trying and failing to pull image",
            id="no image",
        ),
        pytest.param(
            "/log?previous=true",
            {"running": {}},
            "Running",
            400,
            'previous terminated container \\"main\\" in pod \\"p\\" not found',
            id="no previous",
        ),
        pytest.param(
            "/exec?command=x",
            {"terminated": {}},
            "Failed",
            400,
            "cannot exec into a container in a completed pod; current phase is Failed",
            id="ended",
        ),
        pytest.param("/exec?command=x", {"waiting": {}}, "Pending", 500, "container not found", id="exec before start"),
        pytest.param(
            "/exec", {"running": {}}, "Running", 400, "you must specify at least 1 command for the container", id="no command"
        ),
        pytest.param("/exec?command=x", {"running": {}}, "Running", 400, "Upgrade request required", id="no websocket"),
    ],
)
def test_what_a_pod_cannot_do_now(path: str, state: Object, phase: str, code: int, text: str) -> None:
    found, body, agent = asyncio.run(request(PATH + path, state=state, phase=phase))
    assert found == code
    assert text in body
    assert agent.commands == []


def test_a_pod_without_a_node_has_an_empty_log() -> None:
    async def scenario() -> tuple[int, str]:
        server = await start_server()
        server.cluster.create("pods", {**pod("p"), "metadata": {"name": "p", "namespace": "default"}})
        try:
            async with aiohttp.ClientSession() as session, session.get(f"{server.url}{PATH}/log") as response:
                return response.status, await response.text()
        finally:
            await server.stop()

    assert asyncio.run(scenario()) == (200, "")
