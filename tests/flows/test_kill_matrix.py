"""Every signal at every moment to every process of the client. A few in each run; all of them with --exhaustive."""

from __future__ import annotations

import signal

import pytest

from tests.faults.kills import ALL, KILLS, RUN, STEP, Kill, Scene
from tests.flows.conftest import Runner

SAMPLE = (
    Kill(signal.SIGKILL, "between create and its answer", STEP),
    Kill(signal.SIGKILL, "pending", ALL),
    Kill(signal.SIGHUP, "cleaning up", RUN),
    Kill(signal.SIGTERM, "running", STEP),
)


def marks(kind: str, kill: Kill) -> list[pytest.MarkDecorator]:
    real = [pytest.mark.real] if kind == "real" else []
    return real if kind == "devcluster" and kill in SAMPLE else [*real, pytest.mark.exhaustive]


@pytest.mark.parametrize(
    ("runner", "kill"),
    [
        pytest.param(kind, kill, id=f"{kill}-{kind}", marks=marks(kind, kill))
        for kind in ("devcluster", "real")
        for kill in KILLS
    ],
    indirect=["runner"],
)
def test_nothing_is_lost_and_nothing_is_leaked(runner: Runner, kill: Kill) -> None:
    killed = Scene(runner, kill).play()
    assert not killed.wrong, str(killed)
