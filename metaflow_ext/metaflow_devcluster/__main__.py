"""The server process: puts store, controllers, node and API together and runs them until it is told to stop."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import time

from .cli import main
from .controllers import delays
from .controllers.control_plane import control_plane
from .controllers.manager import utc_now
from .lifecycle import Home, LifecycleError, Options, kubeconfig, write_private
from .node.agent import Agent
from .node.capacity import NodeSize, default_size
from .server import start_server

log = logging.getLogger(__name__)


def serve(home: Home, options: Options, *, lifeline: bool) -> int:
    """Run a cluster in this process; returns when it has been stopped."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("aiohttp").setLevel(logging.ERROR)  # its access log would write the secret down
    home.create()
    lock = home.take_lock()
    if lock is None:
        raise LifecycleError(f"Another server uses {home.path}.")
    with lock:
        asyncio.run(_serve(home, options, lifeline=lifeline))
        for path in (home.kubeconfig, home.server):
            path.unlink(missing_ok=True)
        if lifeline:  # the home is its starter's alone, who may be gone
            shutil.rmtree(home.path, ignore_errors=True)
    return 0


def node_size(options: Options) -> NodeSize:
    size = default_size()
    return NodeSize(cpu=options.node_cpu or size.cpu, memory=options.node_memory or size.memory, disk=size.disk)


async def _serve(home: Home, options: Options, *, lifeline: bool) -> None:
    chosen = delays.BY_NAME[options.delays]
    stop = asyncio.Event()
    _stop_on_signals(stop, lifeline=lifeline)
    server = await start_server(port=options.port)
    names = [f"devcluster-{number}" for number in range(options.nodes)]
    agent = Agent(server.store, home.node, utc_now, chosen, nodes=names, size=node_size(options))
    agent.prepare()
    server.use_agent(agent)
    manager = control_plane(server.cluster, chosen)
    tasks = [asyncio.create_task(manager.run()), asyncio.create_task(agent.run())]
    waiting = asyncio.create_task(stop.wait())
    write_private(home.kubeconfig, kubeconfig(server.url))
    state = {"pid": os.getpid(), "url": server.url, "started": time.strftime("%Y-%m-%d %H:%M:%S")}
    write_private(home.server, json.dumps(state))
    log.info("serving on port %d with %d node(s)", server.port, options.nodes)
    await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in (*tasks, waiting):
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(result, Exception):
            log.error("the cluster stops because a part of it has failed", exc_info=result)
    await server.stop()


def _stop_on_signals(stop: asyncio.Event, *, lifeline: bool) -> None:
    """SIGTERM and SIGINT stop the cluster, and so does the end of its starter when it hangs on a lifeline."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    if lifeline:

        def ended() -> None:
            if not os.read(0, 4096):
                loop.remove_reader(0)
                stop.set()

        loop.add_reader(0, ended)


if __name__ == "__main__":
    sys.exit(main())
