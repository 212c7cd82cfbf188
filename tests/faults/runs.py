"""Runs one scenario: a whole flow through the faulty proxy, judged by what its user saw and by what the cluster holds."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metaflow_extensions.kubernetes_ext.cluster import auth
from tests.faults.proxy import Proxy
from tests.faults.schedule import Scenario
from tests.flows.conftest import GANG_OPTIONS, Runner, hear_signals

MOST_SECONDS = 240.0
SUCCEEDED = " succeeded."
CLEAN_SECONDS = 90.0  # in which what is to go has gone


@dataclass
class Outcome:
    """What happened, and what is wrong with it: () when nothing is."""

    scenario: Scenario
    code: int
    output: str
    requests: list[str]
    created: int
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "; ".join(self.wrong) or "as it should be"
        return f"{self.scenario}\n  {verdict}\n" + "".join(f"  | {line}\n" for line in self.output.splitlines())


def run(runner: Runner, scenario: Scenario) -> Outcome:
    """`runner` has a namespace of its own, which must be empty at the end but for what a run leaves by contract."""
    original = Path(runner.environment["KUBECONFIG"])
    proxy = Proxy(auth.load({"KUBECONFIG": str(original)}), scenario.faults)
    proxy.kubeconfig(original, runner.home / "faulty-kubeconfig")
    proxy.start()
    try:
        code, output = _flow(runner, scenario, runner.home / "faulty-kubeconfig")
        outcome = Outcome(scenario, code, output, [f"{one.target} {one.number} {one.fault}" for one in proxy.seen], 0)
        proxy.is_faulty = False
        outcome.created = sum(one.target == "create jobsets" and one.status == 201 for one in proxy.seen)
        outcome.wrong = list(wrongs(outcome, lambda: remains(runner)))
        return outcome
    finally:
        proxy.stop()


def wrongs(outcome: Outcome, left: Callable[[], dict[str, list[str]]]) -> Iterator[str]:
    """All that is not as the scenario wants it. `left` tells the names of what is in the namespace, by kind."""
    scenario, output = outcome.scenario, outcome.output
    attempts = 2 if scenario.end == "recovers" else 1
    if outcome.code == -999:
        yield f"it did not end within {MOST_SECONDS:.0f} s"
    elif scenario.end in ("succeeds", "recovers") and outcome.code != 0:
        yield f"exit code {outcome.code}, but the gang was healthy"
    elif scenario.end in ("fails", "interrupted") and outcome.code == 0:
        yield "exit code 0"
    if scenario.culprit >= 0:
        if f"rank {scenario.culprit}" not in failure_of(output):
            yield f"rank {scenario.culprit} is not said to be the one that failed"
        if "exit code 3" not in failure_of(output):
            yield "the exit code is not said"
    elif "What to do" in output or " failed with " in output:
        yield "a failure is told, and there was none"
    if "Traceback" in output:
        yield "a traceback"
    if outcome.created > attempts or (outcome.created != attempts and scenario.end != "interrupted"):
        yield f"{outcome.created} JobSets were created, not {attempts}"
    # A gang that was done before the signal came has succeeded.
    has_succeeded = scenario.end in ("succeeds", "recovers") or (scenario.end == "interrupted" and SUCCEEDED in output)
    if remaining := eventually_only(left, jobsets=has_succeeded):
        yield f"left in the cluster: {remaining}"


def failure_of(output: str) -> str:
    """The line that says who failed first."""
    return next((line for line in output.splitlines() if "failed with exit code" in line), "")


def eventually_only(left: Callable[[], dict[str, list[str]]], jobsets: bool) -> dict[str, list[str]]:
    """What is left that should not be. A workload that succeeded stays until its time to live has passed."""
    give_up_at = time.monotonic() + CLEAN_SECONDS
    while True:
        found = left()
        if jobsets and len(found.get("jobsets", ())) == 1:
            return {}
        if not any(found.values()) or time.monotonic() > give_up_at:
            return found
        time.sleep(0.5)


def remains(runner: Runner) -> dict[str, list[str]]:
    found = {}
    for kind in ("jobsets", "jobs", "pods", "services"):
        listed = json.loads(runner.as_admin("get", kind, "-o", "json"))
        found[kind] = [item["metadata"]["name"] for item in listed["items"]]
    return {kind: names for kind, names in found.items() if names}


def _flow(runner: Runner, scenario: Scenario, kubeconfig: Path) -> tuple[int, str]:
    """Exit code (-999: it had to be killed) and output. Only the gang is on Kubernetes, since the rest is not in question."""
    words = ["run", "--size", str(scenario.size), "--seconds", str(scenario.seconds)]
    if scenario.culprit >= 0:
        words += ["--fail-rank", str(scenario.culprit), "--fail-after", str(scenario.seconds / 2)]
    if scenario.end == "recovers":
        words += ["--with", "retry:times=1,minutes_between_retries=0", "--fail-until", "1"]
    environment = {
        **runner.environment, **runner.extra, "KUBECONFIG": str(kubeconfig), "TEST_GANG_ONLY": GANG_OPTIONS,
        "METAFLOW_KUBERNETES_LOGS": "all",
    }  # fmt: skip
    process = subprocess.Popen(
        runner.command("gang_flow.py", *words), cwd=runner.home, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=hear_signals,
    )  # fmt: skip
    assert process.stdout is not None
    lines: list[str] = []
    timer = threading.Timer(MOST_SECONDS, _kill, (process.pid,))
    timer.start()
    interrupted = False
    with process:
        for line in process.stdout:
            lines.append(line)
            if scenario.end == "interrupted" and not interrupted and "created in namespace" in line:
                interrupted = True
                threading.Timer(
                    scenario.seconds, _signal, (process, (signal.SIGINT, signal.SIGTERM)[scenario.seed % 2])
                ).start()
    was_killed = not timer.is_alive()
    timer.cancel()
    return (-999 if was_killed else process.returncode), "".join(lines)


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
