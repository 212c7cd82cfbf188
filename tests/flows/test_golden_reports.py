"""What a user reads when a gang fails, whole, from runs: golden/<failure>.txt, the same on both clusters. After a wanted change:
pytest --update-golden, and read the difference as somebody would who is woken by it.

Failures that a test can't bring about in time on the real cluster are there as recorded traces: tests/unit/cli/golden.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from metaflow_extensions.kubernetes_ext.cli.failure_report import MAX_LINES
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from tests.contract import places
from tests.flows.conftest import (
    GANG_OPTIONS,
    ON_BOTH,
    Done,
    Runner,
    devcluster_home,
    devcluster_runner,
    own_devcluster,
    running_gang,
)
from tests.flows.reports import report
from tests.flows.test_failures import eventually, left_over

RANK_1 = "metaflow.org/step=train,jobset.sigs.k8s.io/replicatedjob-name=worker"
Golden = Callable[[str, str], None]


@dataclass(frozen=True)
class Case:
    """`first` is in one of the first three lines: who and why."""

    first: tuple[str, ...]
    words: tuple[str, ...] = ()
    options: str = GANG_OPTIONS
    prepare: Callable[[Runner], object] = lambda runner: None


def no_image(runner: Runner) -> str:
    """A name that no registry has."""
    image = os.environ.get(f"{places.CLUSTER}IMAGE", "") if runner.kind == "real" else ""
    return f"{image.rpartition('/')[0]}/nope:1" if image else "devcluster/does-not-exist:1"


def quota(runner: Runner) -> None:
    runner.as_admin("create", "quota", "team", "--hard=pods=1")
    assert eventually(lambda: "pods: 0/1" in runner.as_admin("get", "quota")), "the quota is counted"


ENDED = {
    "exit": Case(("Worker 2 (rank 3, pod ", "failed with exit code 3."), ("--size", "4", "--fail-rank", "3")),
    "traceback": Case(
        ("Control (rank 0, pod ", "failed with exit code 1."), ("--size", "2", "--fail-rank", "0", "--how", "raise")
    ),
    "memory": Case(
        ("Worker 1 (rank 2, pod ", "ran out of memory (OOMKilled, exit code 137)."),
        ("--size", "3", "--fail-rank", "2", "--how", "memory"),
        "cpu=0.1,memory=500,disk=1000,qos=guaranteed",
    ),
    "image": Case(("(rank ", "can't get its image"), ("--size", "2"), f"{GANG_OPTIONS},image=IMAGE,image_pull_timeout=3"),
    "unschedulable": Case(
        ("2 of 2 ranks have no node", "Insufficient cpu"), ("--size", "2"), "cpu=1000,memory=200,disk=10,launch_timeout=8"
    ),
    "selector": Case(
        ("2 of 2 ranks have no node", "didn't match Pod's node affinity/selector"),
        ("--size", "2"),
        f'{GANG_OPTIONS},launch_timeout=8,node_selector={{"disk": "fast"}}',
    ),
    "quota": Case(("exceeded quota: team",), ("--size", "2"), f"{GANG_OPTIONS},launch_timeout=8", quota),
}


def checked(runner: Runner, done: Done, name: str, first: tuple[str, ...], golden: Golden) -> list[str]:
    """What holds of every report, then the report itself."""
    lines = report(done)
    assert lines, str(done)
    for text in first:
        assert text in "\n".join(lines[:3]), "\n".join(lines)
    assert len(lines) <= MAX_LINES
    assert done.code != 0
    golden(f"{name}.txt", "\n".join(lines) + "\n")
    assert done.output.count("Category ") == 1, "the cause is told once"
    assert done.output.rfind("[rank 0]") < done.output.index("Category "), "the logs come before the report"
    assert eventually(lambda: left_over(runner) == "", 60), left_over(runner)
    return lines


@ON_BOTH
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] if name == "memory" else []) for name in ENDED])
def test_a_gang_that_fails(runner: Runner, name: str, golden: Golden) -> None:
    case = ENDED[name]
    case.prepare(runner)
    done = runner.gang("run", "--seconds", "120", *case.words, options=case.options.replace("IMAGE", no_image(runner)))
    lines = checked(runner, done, name, case.first, golden)
    if name in REMEDIES and (runner.kind == "devcluster" or name == "memory"):
        again = REMEDIES[name](runner, lines[-1])
        assert again.code == 0, str(again)


@ON_BOTH
def test_a_pod_that_is_evicted(runner: Runner, golden: Golden) -> None:
    with closing(KubernetesClient(places.from_kubeconfig(runner.admin_config))) as admin:
        options = f"{GANG_OPTIONS},max_restarts=0"
        done = disturbed(runner, lambda pod: places.evict(admin, runner.namespace, pod), options=options)
    checked(runner, done, "evicted", ("Worker 0 (rank 1, pod ", "was evicted from its node"), golden)


@ON_BOTH
def test_a_pod_that_is_deleted_by_hand(runner: Runner, golden: Golden) -> None:
    done = disturbed(runner, lambda pod: runner.as_admin("delete", "pod", pod, "--wait=false"))
    checked(runner, done, "deleted", ("Worker 0 (rank 1, pod ", "was deleted from outside"), golden)


def disturbed(runner: Runner, disturb: Callable[[str], object], seconds: str = "120", options: str = GANG_OPTIONS) -> Done:
    """A gang of 2 while which something happens to the pod of rank 1."""
    with running_gang(runner, seconds, options=options) as (process, lines):
        pod = runner.kubectl("get", "pods", "-o", "jsonpath={.items[0].metadata.name}", "-l", RANK_1)
        assert eventually(lambda: "hello from rank 1" in runner.as_admin("logs", pod), 60), runner.as_admin("logs", pod)
        disturb(pod)
    return Done(process.returncode, "".join(lines))


@ON_BOTH
def test_a_label_that_is_none(runner: Runner, golden: Golden) -> None:
    """Told before anything is sent."""
    done = runner.gang("run", "--size", "2", options=f'{GANG_OPTIONS},labels={{"team": "b c"}}')
    assert done.code != 0
    told = [line.strip() for line in done.output.splitlines() if "b c" in line]
    assert len(told) == 1, str(done)
    golden("label.txt", told[0] + "\n")
    assert left_over(runner) == ""


@pytest.mark.long
def test_a_gang_that_takes_too_long(runner: Runner, golden: Golden) -> None:
    """The shortest limit there is takes a minute; on the real cluster it is a recorded trace. Of two ranks either may be first."""
    done = runner.gang("run", "--with", "timeout:seconds=60", "--size", "1", "--seconds", "120")
    checked(runner, done, "deadline", ("timed out after 60 s (DeadlineExceeded",), golden)


def test_a_node_that_is_lost(tmp_path: Path, golden: Golden) -> None:
    tolerations = json.dumps(
        [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "toleration_seconds": 1}]
    )
    with devcluster_home() as home, own_devcluster(home, "--nodes", "2") as environment:
        runner = devcluster_runner(tmp_path, environment)
        with running_gang(runner, "120", options=f"{GANG_OPTIONS},max_restarts=0,tolerations={tolerations}") as (
            process,
            lines,
        ):
            node = runner.kubectl("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}", "-l", RANK_1)
            runner.python(f"from metaflow_devcluster.cli import main; main(['node', 'lost', '{node}'])")
        done = Done(process.returncode, "".join(lines))
        assert "pod/gangflow-train-" in left_over(runner), "nobody hears that it has ended"
        runner.python(f"from metaflow_devcluster.cli import main; main(['node', 'restore', '{node}'])")
        checked(runner, done, "node-lost", ("was lost with its node", "pod gangflow-train-NAME-"), golden)


def more_memory(runner: Runner, remedy: str) -> Done:
    found = re.search(r"@resources\(memory=\.\.\.\).*its limit was (\d+)M", remedy)
    assert found, remedy
    memory = 2 * int(found[1])
    return runner.gang("run", "--size", "3", options=f"cpu=0.1,memory={memory},disk=1000,qos=guaranteed")


def fewer_cpus(runner: Runner, remedy: str) -> Done:
    assert "ask for fewer with @resources(cpu=...)" in remedy
    return runner.gang("run", "--size", "2")


def other_selector(runner: Runner, remedy: str) -> Done:
    assert "see @kubernetes(node_selector=...)" in remedy
    return runner.gang("run", "--size", "2", options=f'{GANG_OPTIONS},node_selector={{"kubernetes.io/os": "linux"}}')


def free_quota(runner: Runner, remedy: str) -> Done:
    found = re.search(r"kubectl describe quota (\S+)", remedy)
    assert found, remedy
    runner.as_admin("delete", "quota", found[1])
    return runner.gang("run", "--size", "2")


def another_image(runner: Runner, remedy: str) -> Done:
    assert "Correct @kubernetes(image=...)" in remedy
    return runner.gang("run", "--size", "2")


REMEDIES = {
    "memory": more_memory,
    "image": another_image,
    "unschedulable": fewer_cpus,
    "selector": other_selector,
    "quota": free_quota,
}
