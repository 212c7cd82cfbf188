from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.retry import Backoff
from tests.unit.cluster.server import Server

QUICK = Backoff(first=0.001, longest=0.01, draw=lambda: 0.0)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., KubernetesClient]]:
    """Makes clients of the server whose pauses are short."""
    clients = []

    def make(**settings: Any) -> KubernetesClient:
        client = KubernetesClient(settings.pop("load", server.access), **{"backoff": QUICK, "patience": 5.0, **settings})
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Callable[..., KubernetesClient]) -> KubernetesClient:
    return connect()
