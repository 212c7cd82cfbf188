"""A served API on a free port, and a small client that knows nothing of Kubernetes."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from metaflow_devcluster.server import Server, start_server

Object = dict[str, Any]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
MERGE = "application/merge-patch+json"
_NUMBERS = count(1)


@dataclass
class Reply:
    code: int
    body: Any
    headers: http.client.HTTPMessage


class Client:
    """Requests to one server; `call` asks, `make` also expects 201 and gives the object."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._port, self._prefix = server.port, urlsplit(server.url).path

    def call(
        self, method: str, path: str, body: Any = None, kind: str = "", prefix: str | None = None, **headers: str
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        data = body if isinstance(body, (str, bytes)) or body is None else json.dumps(body)
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        if kind:
            given["Content-Type"] = kind
        connection.request(method, (self._prefix if prefix is None else prefix) + path, data, given)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        try:
            return Reply(response.status, json.loads(content), response.headers)
        except ValueError:
            return Reply(response.status, content.decode(errors="replace"), response.headers)

    def make(self, path: str, body: Object) -> Object:
        reply = self.call("POST", path, body)
        assert reply.code == 201, reply.body
        made: Object = reply.body
        return made

    def watch(self, path: str, query: str = "", seconds: int = 1) -> list[tuple[str, Object]]:
        reply = self.call("GET", f"{path}?watch=1&timeoutSeconds={seconds}&{query}")
        text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
        events = [json.loads(line) for line in text.splitlines() if line]
        return [(event["type"], event["object"]) for event in events]


@pytest.fixture(scope="session")
def client() -> Iterator[Client]:
    """One server for all tests, in a thread of its own; each test uses its own names."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    started: list[Server] = []

    async def start() -> None:
        started.append(await start_server())
        ready.set()

    def run() -> None:
        loop.run_until_complete(start())
        loop.run_forever()
        loop.run_until_complete(started[0].stop())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    yield Client(started[0])
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)


@pytest.fixture
def name() -> str:
    return f"object-{next(_NUMBERS)}"


def config_map(name: str, data: dict[str, str] | None = None, **meta: Any) -> Object:
    return {"metadata": {"name": name, **meta}, "data": {"a": "1"} if data is None else data}


def pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "x", "command": ["true"]}]
    return {"metadata": {"name": name}, "spec": {"restartPolicy": "Never", "containers": containers, **spec}}


def job(name: str, **spec: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def jobset(name: str, **spec: Any) -> Object:
    """A 1+3 gang, suspended."""

    def replicated(role: str, **job_spec: Any) -> Object:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
        return {"name": role, "replicas": 1, "template": {"spec": {"template": template, **job_spec}}}

    workers = replicated("worker", parallelism=3, completions=3)
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    jobs = [replicated("control"), workers]
    return {**kind, "metadata": {"name": name}, "spec": {"suspend": True, "replicatedJobs": jobs, **spec}}


def selecting(text: str) -> str:
    return quote(text, safe="")
