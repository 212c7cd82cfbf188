"""Steps that wait in a queue of Kueue: its real controller on the real cluster, a script of it on the development cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from tests.contract import places
from tests.contract.queues import high, queue
from tests.flows.conftest import GANG_OPTIONS, ON_BOTH, ON_REAL_APPWRAPPER, Runner, running_gang
from tests.flows.test_gangs import read_run


@contextmanager
def a_queue(runner: Runner, cpu: str) -> Iterator[None]:
    """LocalQueue `team` of the runner's namespace, with a quota of its own where Kueue is real. A higher priority preempts."""
    if runner.kind != "real":
        subprocess.run(
            [sys.executable, "-m", "metaflow_devcluster", "queue", "team", "--namespace", runner.namespace],
            env=runner.environment, check=True, timeout=60,
        )  # fmt: skip
        yield
        return
    with closing(KubernetesClient(places.from_kubeconfig(runner.admin_config))) as admin, queue(admin, runner.namespace, cpu):
        yield


@ON_BOTH
def test_a_gang_and_a_plain_step_in_a_queue(runner: Runner) -> None:
    with a_queue(runner, "2"):
        done = runner.run("gang_flow.py", "run", "--size", "2", "--with", f"kubernetes:{GANG_OPTIONS},queue=team", timeout=400)
        assert done.code == 0, str(done)
        there = json.loads(runner.as_admin("get", "jobsets,jobs", "-o", "json"))["items"]
        queues = [(one["kind"], one["metadata"]["labels"].get("kueue.x-k8s.io/queue-name")) for one in there]
        assert sorted(queues, key=str) == sorted([("JobSet", "team"), *[("Job", "team")] * 3, *[("Job", None)] * 2], key=str)


@pytest.mark.parametrize("runner", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
def test_a_gang_waits_for_the_quota_of_another(runner: Runner) -> None:
    with a_queue(runner, "0.2"), running_gang(runner, "15", options=f"{GANG_OPTIONS},queue=team") as (first, lines):
        second = runner.gang("run", "--size", "2", options=f"{GANG_OPTIONS},queue=team")
        assert second.code == 0, str(second)
        assert "queue team" in second.output, str(second)
        assert first.wait(60) == 0, "".join(lines)


@pytest.mark.parametrize("backend", ["jobset", "appwrapper"])
@ON_REAL_APPWRAPPER
def test_a_gang_makes_room_for_a_higher_priority_and_finishes_later(runner: Runner, backend: str) -> None:
    options = f"{GANG_OPTIONS},queue=team,backend={backend}"
    with a_queue(runner, "0.2"), running_gang(runner, "10", options=options) as (first, lines):
        second = runner.gang("run", "--size", "2", options=f"{options},workload_priority={high(runner.namespace)}")
        assert second.code == 0, str(second)
        assert first.wait(90) == 0, "".join(lines)
    told = "".join(lines)
    assert "preempted" in told, told
    run = read_run(runner, names=("ranks", "attempts"), back=1)
    assert eval(run["data"]["ranks"]) == [0, 1]
    assert eval(run["data"]["attempts"]) == {0}, "no attempt of @retry was spent"
    assert [task["stdout"].count("hello from rank") for task in run["tasks"].values()] == [1, 1]


@ON_REAL_APPWRAPPER
def test_an_appwrapper_starts_a_failed_gang_again_within_its_limit(runner: Runner) -> None:
    tolerance = json.dumps({"retry_limit": 1, "failure_grace": 1, "retry_pause": 1})
    options = f"{GANG_OPTIONS},backend=appwrapper,fault_tolerance={tolerance}"
    once = ("--fail-rank", "1", "--fail-once", str(runner.home / "failed"))
    done = runner.gang("run", "--size", "2", *once, options=options)
    assert done.code == 0, str(done)
    assert "The AppWrapper" in done.output, str(done)
    run = read_run(runner, names=("ranks", "attempts"))
    assert eval(run["data"]["ranks"]) == [0, 1]
    assert eval(run["data"]["attempts"]) == {0}, "no attempt of @retry was spent"
