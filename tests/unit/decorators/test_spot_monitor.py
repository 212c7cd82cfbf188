"""Core's sidecar is started where the node's metadata service answers, and nowhere else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from metaflow_extensions.kubernetes_ext.decorators import spot_monitor
from metaflow_extensions.kubernetes_ext.decorators.spot_monitor import SpotMonitor


class _Sidecar:
    made: list[_Sidecar]

    def __init__(self, kind: str) -> None:
        self.kind, self.started, self.terminated = kind, threading.Event(), False
        self.made.append(self)

    def start(self) -> None:
        self.started.set()

    def terminate(self) -> None:
        self.terminated = True


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[_Sidecar]:
    _Sidecar.made = []
    monkeypatch.setattr(spot_monitor, "Sidecar", _Sidecar)
    return _Sidecar.made


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def wait_for_the_look() -> None:
    for thread in threading.enumerate():
        if thread.name == "spot monitor":
            thread.join(60)


def test_where_it_answers(made: list[_Sidecar], listening: socket.socket) -> None:
    monitor = SpotMonitor(listening.getsockname())
    monitor.start()
    wait_for_the_look()
    assert [(one.kind, one.started.is_set()) for one in made] == [("spot_termination_monitor", True)]
    monitor.stop()
    assert made[0].terminated


def test_where_nobody_answers(made: list[_Sidecar], listening: socket.socket) -> None:
    address = listening.getsockname()
    listening.close()
    monitor = SpotMonitor(address)
    monitor.start()
    wait_for_the_look()
    monitor.stop()
    assert made == []


def test_a_task_that_is_over_by_then_starts_none(made: list[_Sidecar], listening: socket.socket) -> None:
    monitor = SpotMonitor(listening.getsockname())
    monitor.stop()
    monitor.start()
    wait_for_the_look()
    assert made == []
