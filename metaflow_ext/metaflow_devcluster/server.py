"""Starting and stopping the API server in the running event loop.

The caller owns the store's other users (controllers, node) and the process; this owns the port.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from .api.admission import Admission
from .api.agent import NodeAgent
from .api.app import App, web_server
from .api.bootstrap import bootstrap
from .api.context import Api
from .api.definitions import Definitions
from .api.quota import keep_quotas
from .api.tables import Tables
from .cluster import Cluster
from .resources import JOBSET_GROUP, JOBSET_VERSION, Resource, jobset_resource, served_resources
from .store import Store

LOOPBACK = "127.0.0.1"
JOBSET = jobset_resource()


@dataclass
class Server:
    """A running API server: its `url` carries the secret, `cluster` is the way in for controllers and node."""

    url: str
    port: int
    secret: str
    cluster: Cluster
    api: Api
    _runner: web.ServerRunner = field(repr=False)
    _tasks: list[asyncio.Task[Any]] = field(default_factory=list, repr=False)

    @property
    def store(self) -> Store:
        return self.cluster.store

    def use_agent(self, agent: NodeAgent | None) -> None:
        """Let logs and exec be answered by a node that has started, or by none again."""
        self.api.agent = agent

    async def stop(self) -> None:
        """Close the port and end every open request."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._runner.cleanup()


def make_api(store: Store, *, agent: NodeAgent | None = None) -> Api:
    """The API over a store, without a port: what tests call directly."""
    admission = Admission(store)
    for resource in store.resources:
        if resource.kind == "JobSet":
            known = (JOBSET_GROUP, JOBSET_VERSION, "JobSet")
            admission.schemas.alias(resource.group, resource.version, "JobSet", known)
    tables = Tables()
    definitions = Definitions(store, admission.schemas, tables)
    return Api(store=store, admission=admission, tables=tables, definitions=definitions, agent=agent)


async def start_server(
    *,
    port: int = 0,
    secret: str | None = None,
    jobset: Resource | None = JOBSET,
    agent: NodeAgent | None = None,
    store: Store | None = None,
) -> Server:
    """Serve the API on the loopback interface.

    `port` 0 takes a free one. `secret` None makes a new one; an empty string serves without a prefix and is for
    tests only. `jobset` None is a cluster without JobSet. A `store` that is given keeps its own resources.
    """
    store = store or Store(served_resources(jobset=jobset))
    api = make_api(store, agent=agent)
    cluster = Cluster(store, api.admission)
    secret = secrets.token_urlsafe(24) if secret is None else secret
    runner = web.ServerRunner(web_server(App(api, secret)), handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, port)
    await site.start()
    port = _port_of(runner)
    if store.find("namespaces", None, "default") is None:
        bootstrap(cluster, port=port)
    tasks = [asyncio.create_task(keep_quotas(store))]
    url = f"http://{LOOPBACK}:{port}" + (f"/s/{secret}" if secret else "")
    return Server(url=url, port=port, secret=secret, cluster=cluster, api=api, _runner=runner, _tasks=tasks)


def _port_of(runner: web.ServerRunner) -> int:
    return int(runner.addresses[0][1])
