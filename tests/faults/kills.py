"""A whole gang run one of whose processes gets a signal at a certain moment, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metaflow_extensions.kubernetes_ext.cluster import auth
from tests.contract.waiting import until
from tests.faults.proxy import Proxy
from tests.faults.runs import CLEAN_SECONDS, MOST_SECONDS, remains
from tests.flows.conftest import GANG_OPTIONS, Runner, hear_signals
from tests.flows.test_failures import step_process

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
MOMENTS = ("before create", "between create and its answer", "pending", "running", "finishing", "cleaning up")
RUN, STEP, ALL = "run", "step", "all"


@dataclass(frozen=True)
class Kill:
    number: signal.Signals
    moment: str
    whom: str  # the run's process, a step's, or all of the client

    def __str__(self) -> str:
        return f"{self.number.name[3:]} to {self.whom}, {self.moment}"

    @property
    def is_detaching(self) -> bool:
        """The run is killed: its gang goes on without it."""
        return self.number is signal.SIGKILL and self.whom != STEP

    @property
    def gang_fails(self) -> bool:
        return self.moment == "cleaning up"


KILLS = [
    *(Kill(number, moment, whom) for moment in MOMENTS for number in SIGNALS for whom in (RUN, STEP)),
    *(Kill(signal.SIGKILL, moment, ALL) for moment in MOMENTS),
]


@dataclass
class Killed:
    """What happened. `wrong` is empty if all is as it must be."""

    kill: Kill
    code: int | None = None
    lines: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    has_fired: bool = False

    def __str__(self) -> str:
        verdict = "; ".join(self.wrong) or "as it should be"
        return f"{self.kill}: exit code {self.code}\n  {verdict}\n" + "".join(f"  | {line}" for line in self.lines)


class Scene:
    """One run in the namespace of `runner`, behind a proxy that knows when the moment is."""

    def __init__(self, runner: Runner, kill: Kill) -> None:
        self.runner, self.kill, self.result = runner, kill, Killed(kill)
        self.kubeconfig = runner.home / "kubeconfig-of-the-proxy"
        original = Path(runner.environment["KUBECONFIG"])
        self._proxy = Proxy(auth.load({"KUBECONFIG": str(original)}), (), on_request=self._asked, on_answer=self._answered)
        self._proxy.kubeconfig(original, self.kubeconfig)
        self._once = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def play(self) -> Killed:
        if self.kill.moment == "pending":
            self.runner.as_admin("create", "quota", "none", "--hard=pods=0")
            until(lambda: "pods: 0/0" in self.runner.as_admin("get", "quota", "none"), "the quota is counted")
        self._proxy.start()
        try:
            self._run()
            self.result.wrong = list(self._wrongs())
        finally:
            self._proxy.stop()
        return self.result

    # -- the moment

    def _asked(self, target: str) -> bool:
        if target == "create jobsets" and self.kill.moment == "before create":
            return not self._fire()
        if target == "delete jobsets" and self.kill.moment == "cleaning up":
            self._fire()
        return True

    def _answered(self, target: str) -> None:
        if target == "create jobsets" and self.kill.moment == "between create and its answer" and self._fire():
            time.sleep(0.5)

    def _printed(self, line: str) -> None:
        marks = {"pending": "Submitted.", "running": "hello from rank 0", "finishing": "ranks have succeeded."}
        if self.kill.moment in marks and marks[self.kill.moment] in line:
            self._fire()

    def _fire(self) -> bool:
        """The signal, the first time that the moment is there."""
        with self._once:
            if self.result.has_fired:
                return False
            self.result.has_fired = True
        assert self._process is not None
        if self.kill.whom == RUN:
            os.kill(self._process.pid, self.kill.number)
        elif self.kill.whom == STEP:
            os.kill(step_process(self._process.pid), self.kill.number)
        else:
            for pid in clients_of(self.kubeconfig):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return True

    # -- the run

    def _run(self) -> None:
        words = ["run", "--size", "2", "--seconds", "3" if self.kill.moment in ("pending", "finishing") else "8"]
        if self.kill.gang_fails:
            words += ["--fail-rank", "1"]
        environment = {**self.runner.environment, "KUBECONFIG": str(self.kubeconfig), "TEST_GANG_ONLY": GANG_OPTIONS}
        self._process = subprocess.Popen(
            self.runner.command("gang_flow.py", *words), cwd=self.runner.home, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            preexec_fn=hear_signals,
        )  # fmt: skip
        timer = threading.Timer(MOST_SECONDS, self._end_all)
        timer.start()
        with self._process as process:
            assert process.stdout is not None
            for line in process.stdout:
                self.result.lines.append(line)
                self._printed(line)
        timer.cancel()
        self.result.code = self._process.returncode

    def _end_all(self) -> None:
        self.result.lines.append(f"(it did not end within {MOST_SECONDS:.0f} s)\n")
        for pid in clients_of(self.kubeconfig):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    # -- afterwards

    def _wrongs(self) -> Iterator[str]:
        text = "".join(self.result.lines)
        if not self.result.has_fired:
            yield "the moment never came"
        if "did not end within" in text:
            yield "it did not end"
        if "Traceback" in text:
            yield "a traceback"
        if self.result.code == 0 and self.kill.moment != "finishing":
            yield "exit code 0"
        if not _eventually(lambda: not clients_of(self.kubeconfig)):
            yield f"processes are left: {clients_of(self.kubeconfig)}"
        if self.kill.is_detaching:
            yield from self._goes_on()
        elif not _eventually(self._is_clean):
            yield f"left in the cluster: {self._left()}"

    def _goes_on(self) -> Iterator[str]:
        """The gang of a run that was killed: found, followed to its end, and its results used."""
        if self.kill.moment == "pending":
            self.runner.as_admin("delete", "quota", "none")
        if not self._left().get("jobsets"):
            if self.kill.moment in ("before create", "cleaning up"):
                return
            yield "its gang is gone"
        if self.kill.moment != "finishing":  # else nothing is unfinished
            listed = self.runner.run("gang_flow.py", "kubernetes", "list", "--orphans", "--finished").output
            if "train" not in listed:
                yield f"list --orphans does not name it:\n{listed}"
            attached = self.runner.run("gang_flow.py", "kubernetes", "attach", self._run_id(), timeout=MOST_SECONDS)
            if attached.code != (1 if self.kill.gang_fails else 0):
                yield f"attach: {attached}"
        if not _eventually(self._is_clean):
            yield f"left in the cluster: {self._left()}"
        if not self.kill.gang_fails:
            resumed = self.runner.gang("resume", "--origin-run-id", self._run_id())
            if resumed.code != 0 or "hello from rank" in resumed.output:
                yield f"resume: {resumed}"

    def _run_id(self) -> str:
        line = next(line for line in self.result.lines if "run-id" in line)
        return line.rpartition("run-id ")[2].strip(" ):\n")

    def _left(self) -> dict[str, list[str]]:
        return remains(self.runner)

    def _is_clean(self) -> bool:
        """Nothing is there; a gang that succeeded stays until its time to live has passed."""
        left = self._left()
        has_succeeded = self.kill.moment == "finishing" or (self.kill.is_detaching and not self.kill.gang_fails)
        return not left or (has_succeeded and len(left.get("jobsets", ())) == 1 and self._is_completed())

    def _is_completed(self) -> bool:
        return "Completed" in self.runner.as_admin("get", "jobsets", "-o", "jsonpath={.items[*].status.terminalState}")


def clients_of(kubeconfig: Path) -> list[int]:
    """All processes on the client's side that have this in their environment. Pods have none."""
    mark = f"KUBECONFIG={kubeconfig}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return found


def _eventually(condition: Callable[[], bool]) -> bool:
    give_up_at = time.monotonic() + CLEAN_SECONDS
    while not condition():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.2)
    return True
