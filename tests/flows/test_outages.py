"""The API server is away, or the laptop is, while a gang runs: its run goes on as if nothing had been."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.cluster import auth
from tests.faults.kills import clients_of
from tests.faults.proxy import Proxy
from tests.flows.conftest import GANG_OPTIONS, ON_BOTH, Runner, hear_signals

pytestmark = pytest.mark.long
SUCCEEDED = "All 2 ranks have succeeded."


def kubeconfig_of(runner: Runner) -> Path:
    return runner.home / "kubeconfig-of-the-proxy"


@contextmanager
def running_behind_a_proxy(runner: Runner, seconds: float) -> Iterator[tuple[Proxy, subprocess.Popen[str], list[str]]]:
    """A run whose gang of 2 runs by now, and what it prints, which is whole at the end."""
    original, kubeconfig = Path(runner.environment["KUBECONFIG"]), kubeconfig_of(runner)
    proxy = Proxy(auth.load({"KUBECONFIG": str(original)}), ())
    proxy.kubeconfig(original, kubeconfig)
    proxy.start()
    lines: list[str] = []
    process = subprocess.Popen(
        runner.command("gang_flow.py", "run", "--size", "2", "--seconds", str(seconds)),
        cwd=runner.home, env={**runner.environment, "KUBECONFIG": str(kubeconfig), "TEST_GANG_ONLY": GANG_OPTIONS},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=hear_signals,
    )  # fmt: skip
    try:
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if "hello from rank 0" in line:
                    yield proxy, process, lines
                    break
            lines += process.stdout.readlines()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        proxy.stop()
    assert any("hello from rank 0" in line for line in lines), "".join(lines)


@ON_BOTH
@pytest.mark.parametrize("seconds", [30, pytest.param(300, marks=pytest.mark.exhaustive)])
def test_the_server_is_away(runner: Runner, seconds: float) -> None:
    with running_behind_a_proxy(runner, seconds + 20) as (proxy, process, lines):
        heard = len(lines)
        proxy.outage(seconds)
    assert process.returncode == 0, "".join(lines)
    until_the_end = lines[heard : next(number for number, line in enumerate(lines) if SUCCEEDED in line)]
    assert 1 <= len(until_the_end) <= 3, "".join(lines)


@ON_BOTH
@pytest.mark.parametrize(
    ("away", "seconds"),
    [
        pytest.param(20, 5, id="the gang ends meanwhile"),
        pytest.param(600, 640, id="ten minutes", marks=pytest.mark.exhaustive),
        pytest.param(600, 60, id="ten minutes, the gang ends meanwhile", marks=pytest.mark.exhaustive),
    ],
)
def test_a_laptop_that_sleeps(runner: Runner, away: float, seconds: float) -> None:
    """Its connections are gone when it wakes up, its token has expired, and the server knows its watches no more."""
    with running_behind_a_proxy(runner, seconds) as (proxy, process, lines):
        heard = len(lines)
        clients = clients_of(kubeconfig_of(runner))
        assert len(clients) >= 3, "the run, its step process and its supervisor"
        send(clients, signal.SIGSTOP)
        proxy.cut_all()
        time.sleep(away)
        for kind, target in (("401", "watch pods"), ("410", "watch jobsets"), ("410", "watch jobs")):
            proxy.meet_next(kind, target)
        send(clients, signal.SIGCONT)
    assert process.returncode == 0, "".join(lines)
    assert sum(one.target == "create jobsets" for one in proxy.seen) == 1
    assert len(lines) - heard < 15, "".join(lines)  # the end of the gang, join, end


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        os.kill(pid, number)
