"""SIGTERM to a run reaches its step processes."""

import os
import signal
import subprocess
import sys

from metaflow_extensions.kubernetes_ext.decorators import run_signals

RUN = """
import subprocess, sys, time
from metaflow_extensions.kubernetes_ext.decorators import run_signals
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; print('up', flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
child.stdout.readline()
try:
    run_signals.install()
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt as interrupted:
    print(interrupted, child.wait(60), flush=True)
"""


def test_the_run_is_interrupted_and_its_children_are_told() -> None:
    with subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "ready\n"
        run.send_signal(signal.SIGTERM)
        assert run.stdout.read() == f"SIGTERM {-signal.SIGTERM}\n"


def test_children_are_found() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in run_signals.children(os.getpid())
        child.kill()
