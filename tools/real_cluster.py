"""The real Kubernetes of tests/cluster, as the test runner needs it: built while other tests run, up, down. Standard library only."""

from __future__ import annotations

import os
import signal
import subprocess

from environment import ROOT, say

CLUSTER = ROOT / "tests" / "cluster"
INSIDE = (str(CLUSTER / "run"), "--")  # before a command that is to run in the cluster's network
PARTS = ("--kueue", "--appwrapper")
REFUSED = 3  # the exit code of `up` where there is no root, no Go, no Debian


class RealCluster:
    """Taken down at the end if it was not up before. `anew`: what is up is taken down first."""

    def __init__(self, *, anew: bool) -> None:
        self._anew = anew
        self._was_up = False
        self._building: subprocess.Popen[bytes] | None = None
        self._coming_up: subprocess.Popen[bytes] | None = None

    def prepare(self) -> bool:
        """Begin to build what is not cached, in the background, with processor time that nothing else wants."""
        if self._anew:
            run("down")
        self._was_up = run("env", quiet=True) == 0
        if not self._was_up:
            command = ["nice", "-n", "9", str(CLUSTER / "up"), "--yes", "--only-build", *PARTS]
            nowhere = subprocess.DEVNULL  # `up` says what was wrong
            self._building = subprocess.Popen(command, cwd=ROOT, stdin=nowhere, stdout=nowhere, stderr=nowhere)
        return True

    def begin(self) -> bool:
        """Begin to come up, which is mostly waiting. What the background has not built is gone on with, from Go's cache."""
        _end(self._building)
        self._coming_up = subprocess.Popen([str(CLUSTER / "up"), "--yes", *PARTS], cwd=ROOT, stdin=subprocess.DEVNULL)
        return True

    def up(self) -> bool:
        """Whether it is up."""
        assert self._coming_up is not None
        code = self._coming_up.wait()
        if code == REFUSED:
            say("THE TESTS ON THE REAL KUBERNETES DID NOT RUN, for the reason above.")
        return code == 0

    def down(self) -> None:
        _end(self._building)
        _end(self._coming_up)
        if not self._was_up:
            run("down")


def _end(process: subprocess.Popen[bytes] | None) -> None:
    if process is not None and process.poll() is None:
        process.send_signal(signal.SIGTERM)
        process.wait()


def run(script: str, *arguments: str, quiet: bool = False) -> int:
    """The exit code of one of the scripts in tests/cluster."""
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run([str(CLUSTER / script), *arguments], cwd=ROOT, stdout=output, stderr=output).returncode


def is_ci() -> bool:
    return os.environ.get("CI", "") in ("true", "1")
