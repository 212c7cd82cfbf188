"""Runs each scenario with core Metaflow and with this extension, and says what its user sees and what is left in the cluster."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOW = ROOT / "tests" / "flows" / "gang_flow.py"
COMPONENT = ROOT / "tests" / "cluster" / "component"
PYTHONS = {"core": ROOT / ".venv" / "core" / "bin" / "python", "ours": ROOT / ".venv" / "tests" / "bin" / "python"}
SMALL = "cpu=0.1,memory=200,disk=10"


@dataclass(frozen=True)
class Scenario:
    """`act` is called with the run's process once all pods of the gang run (`when_running`) or at once; `before` before it starts."""

    title: str
    right: str  # what a user would expect
    words: Sequence[str]
    options: str = SMALL
    environment: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    act: Callable[[subprocess.Popen[str]], None] | None = None
    when_running: bool = True
    patience: float = 240.0


def kubectl(*words: str) -> str:
    return subprocess.run(["kubectl", "-n", namespace(), *words], capture_output=True, text=True, check=False).stdout


def namespace() -> str:
    return os.environ["METAFLOW_KUBERNETES_NAMESPACE"]


def terminate(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)


def outage(process: subprocess.Popen[str]) -> None:
    subprocess.run([COMPONENT, "kill", "kube-apiserver"], check=True)
    time.sleep(10)
    subprocess.run([COMPONENT, "start", "kube-apiserver"], check=True)


def delete(process: subprocess.Popen[str]) -> None:
    kubectl("delete", "jobsets", "--all", "--wait=false")


def stop_queue(policy: str) -> None:
    """None, Hold (admits nothing) or HoldAndDrain (stops what runs, too)."""
    kubectl("patch", "clusterqueue", "metaflow", "--type=merge", "-p", json.dumps({"spec": {"stopPolicy": policy}}))


def release_later(process: subprocess.Popen[str]) -> None:
    time.sleep(45)
    stop_queue("None")


def drain_and_release(process: subprocess.Popen[str]) -> None:
    stop_queue("HoldAndDrain")
    time.sleep(30)
    stop_queue("None")


QUEUED = {"METAFLOW_KUBERNETES_LABELS": "kueue.x-k8s.io/queue-name=metaflow"}
SCENARIOS = {
    "queued": Scenario(
        "Kueue admits a gang of 2 only after 45 s", "the step waits, says why, then runs",
        ["run", "--size", "2"], environment=QUEUED, before=lambda: stop_queue("Hold"), act=release_later, when_running=False,
    ),
    "preempted": Scenario(
        "Kueue stops a running gang of 2, and starts it again 30 s later", "the step waits, then the gang runs again",
        ["run", "--size", "2", "--seconds", "30"], environment=QUEUED, act=drain_and_release,
    ),
    "too-large": Scenario(
        "a gang asks for 6 CPUs, its queue has 4", "says that it can never start",
        ["run", "--size", "3"], options="cpu=2,memory=200,disk=10", environment=QUEUED, patience=60,
    ),
    "exit-code": Scenario(
        "worker 1 (rank 2) of 4 ends with exit code 3", "exit code, rank and its last lines",
        ["run", "--size", "4", "--fail-rank", "2", "--seconds", "60"],
    ),
    "memory": Scenario(
        "worker 0 (rank 1) of 2 runs out of memory", "says so, and which rank",
        ["run", "--size", "2", "--fail-rank", "1", "--how", "memory", "--seconds", "60"],
        options="cpu=0.1,memory=500,disk=1000,qos=guaranteed",
    ),
    "sigterm": Scenario(
        "SIGTERM to `python flow.py run` while a gang of 2 runs", "nothing is left in the cluster",
        ["run", "--size", "2", "--seconds", "300"], act=terminate,
    ),
    "outage": Scenario(
        "the API server is away for 10 s while a healthy gang of 2 runs", "the gang goes on and succeeds",
        ["run", "--size", "2", "--seconds", "45"], act=outage,
    ),
    "deleted": Scenario(
        "somebody deletes the JobSet of a running gang of 2", "says that it was deleted",
        ["run", "--size", "2", "--seconds", "300"], act=delete,
    ),
    "one": Scenario("num_parallel=1", "a gang of one", ["run", "--size", "1"]),
}  # fmt: skip


def play(scenario: Scenario, python: Path) -> str:
    """What happened, in one cell of the table."""
    home = tempfile.mkdtemp()
    environment = {
        **os.environ, **scenario.environment, "HOME": home, "METAFLOW_USER": "tester",
        "TEST_GANG_ONLY": scenario.options, "PYTHONUNBUFFERED": "1",
    }  # fmt: skip
    if scenario.before is not None:
        scenario.before()
    process = subprocess.Popen(
        [python, FLOW, *scenario.words], cwd=home, env=environment, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    if scenario.act is not None:
        threading.Thread(target=act_when_it_runs, args=(scenario, scenario.act, process), daemon=True).start()
    began = time.monotonic()
    try:
        output, _ = process.communicate(timeout=scenario.patience)
        ended = f"exit code {process.returncode} after {time.monotonic() - began:.0f} s"
    except subprocess.TimeoutExpired:
        ended = f"still waits after {scenario.patience:.0f} s"
        os.killpg(process.pid, signal.SIGINT)
        output, _ = process.communicate()
    time.sleep(15)  # whatever goes, is gone
    left = len(kubectl("get", "jobsets,pods", "-o", "name").split())
    running = running_pods()
    sys.stderr.write(output)
    kubectl("delete", "jobsets,pods", "--all", "--wait=true")
    return f"{ended}; left: {left} objects, {running} running pods<br>{'<br>'.join(last_words(output))}"


def act_when_it_runs(scenario: Scenario, act: Callable[[subprocess.Popen[str]], None], process: subprocess.Popen[str]) -> None:
    size = int(scenario.words[scenario.words.index("--size") + 1])
    while scenario.when_running and running_pods() < size:
        if process.poll() is not None:
            return
        time.sleep(0.5)
    time.sleep(5)
    act(process)


def running_pods() -> int:
    return len(kubectl("get", "pods", "--field-selector=status.phase=Running", "-o", "name").split())


def last_words(output: str, most: int = 12) -> list[str]:
    """The last lines that tell something, without time stamps and names that change."""
    lines = [re.sub(r"^\S+ \S+ (\[\S+ \(pid \d+\)\] ?)?", "", line).rstrip() for line in output.splitlines()]
    told = [line for line in lines if line and not line.startswith(("Traceback", "  File", "    "))]
    return [f"`{line[:160].replace('|', '¦')}`" for line in told[-most:]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("-k", action="append", choices=[*SCENARIOS], default=None)
    wanted = parser.parse_args().k or list(SCENARIOS)
    print("| scenario | core Metaflow | this extension |\n|---|---|---|", flush=True)
    for name in wanted:
        scenario = SCENARIOS[name]
        cells = [play(scenario, PYTHONS[side]) for side in ("core", "ours")]
        print(f"| {scenario.title}. Right: {scenario.right} | {cells[0]} | {cells[1]} |", flush=True)


if __name__ == "__main__":
    main()
