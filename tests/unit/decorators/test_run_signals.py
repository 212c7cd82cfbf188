"""SIGTERM to a run reaches its step processes, SIGINT those that follow a workload."""

import os
import signal
import subprocess
import sys

import pytest

from metaflow_extensions.kubernetes_ext.decorators import run_signals

RUN = """
import subprocess, sys, time
from metaflow_extensions.kubernetes_ext.decorators import run_signals
def start(*words):
    code = "import time; print('up', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-S", "-c", code, *words], stdout=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    return child
follower, other = start("kubernetes", "step", "train"), start("step", "train")
try:
    run_signals.install()
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt as interrupted:
    time.sleep(0.2)
    print(interrupted, follower.wait(60), other.poll(), flush=True)
    other.kill()
"""


@pytest.mark.parametrize(
    ("number", "others_end"),
    [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGTERM), (signal.SIGINT, None)],
)
def test_the_run_is_interrupted_and_its_children_are_told(number: signal.Signals, others_end: int | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as run:  # fmt: skip
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(number)
        assert run.stdout.read() == f"{number.name} {-signal.SIGTERM} {others_end}\n"


def test_children_are_found() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in run_signals.children(os.getpid())
        child.kill()
