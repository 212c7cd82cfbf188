"""The same flows on the development cluster and on the real Kubernetes, whose ranks are containers with names, limits and
images of their own, under a user with exactly the rights of docs/rbac.yaml."""

from __future__ import annotations

import json
import os
import signal

from tests.flows.conftest import ON_BOTH, Runner, running_gang
from tests.flows.test_failures import eventually, left_over
from tests.flows.test_gangs import read_run

pytestmark = ON_BOTH


def test_a_foreach_over_gangs(runner: Runner) -> None:
    done = runner.gang("run", flow="foreach_gang_flow.py")
    assert done.code == 0, str(done)
    assert "result [[('a', 0), ('a', 1)], [('b', 0), ('b', 1)]]" in done.output


def test_a_failed_gang_is_resumed_as_a_whole(runner: Runner) -> None:
    words = ["--size", "2", "--fail-rank", "1", "--fail-after", "2"]
    assert runner.gang("run", *words).code != 0
    done = runner.gang("resume")
    assert "hello from rank 0 of 2" in done.output, str(done)
    assert "cloned" in done.output


def test_a_retry_runs_the_whole_gang_again(runner: Runner) -> None:
    done = runner.gang(
        "run", "--with", "retry:times=1,minutes_between_retries=0", "--size", "2", "--fail-rank", "1", "--fail-until", "1"
    )
    assert done.code == 0, str(done)
    run = read_run(runner, names=("attempts",))
    assert eval(run["data"]["attempts"]) == {1}


def test_an_interrupted_run_leaves_nothing(runner: Runner) -> None:
    with running_gang(runner, "300") as (process, lines):
        os.killpg(process.pid, signal.SIGINT)
    assert process.returncode != 0
    assert eventually(lambda: left_over(runner) == "", 60), "".join(lines)


def test_the_metadata_of_a_failed_gang_tells_what_happened(runner: Runner) -> None:
    runner.gang("run", "--size", "2", "--fail-rank", "1")
    found = json.loads(
        runner.python(
            "import json\nfrom metaflow import Flow, namespace\nnamespace(None)\nrun = Flow('GangFlow').latest_run\n"
            "print(json.dumps({task.id: task.metadata_dict for task in run['train']}))"
        )
    )
    control = next(values for task_id, values in found.items() if "-worker-" not in task_id)
    failure = json.loads(control["kubernetes-failure"])
    assert (failure["category"], failure["rank"], failure["exit_code"]) == ("user_error", 1, 3)
