"""The same flows on the development cluster and on the real Kubernetes, whose ranks are containers with names, limits and
images of their own, under a user with exactly the rights of docs/rbac.yaml."""

from __future__ import annotations

import json
import os
import signal

import pytest

from tests.contract.places import CLUSTER
from tests.flows.conftest import ON_BOTH, Runner, running_gang
from tests.flows.test_failures import eventually, left_over, own_lines
from tests.flows.test_gangs import read_run

pytestmark = ON_BOTH


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(
            ["--fail-rank", "2"],
            ["Worker 1 (rank 2, pod ", "failed with exit code 3.", "|   about to fail"],
            id="exit 3 on a worker",
        ),
        pytest.param(
            ["--fail-rank", "0", "--how", "raise"],
            ["Control (rank 0, pod ", "failed with exit code 1.", "|   ValueError: a wrong value"],
            id="a traceback on control",
        ),
    ],
)
def test_the_report_names_the_culprit(runner: Runner, words: list[str], expected: list[str]) -> None:
    done = runner.gang("run", "--size", "3", "--seconds", "120", *words)
    assert done.code != 0
    lines = own_lines(done)
    for text in expected:
        assert text in lines, lines
    assert lines.count("failed with exit code") == 1, "the cause is told once"
    assert lines.rindex("[rank 0]") < lines.index("failed with exit code"), "the logs come before the report"
    assert eventually(lambda: left_over(runner) == "", 60), left_over(runner)


@pytest.mark.long
def test_out_of_memory(runner: Runner) -> None:
    words = ["--size", "2", "--fail-rank", "1", "--how", "memory", "--seconds", "120"]
    done = runner.gang("run", *words, options="cpu=0.1,memory=500,disk=1000,qos=guaranteed")
    assert done.code != 0
    lines = own_lines(done)
    assert "Worker 0 (rank 1, pod " in lines
    assert "ran out of memory (OOMKilled, exit code 137)" in lines, lines


def test_an_image_that_does_not_exist_is_given_up_in_time(runner: Runner) -> None:
    image = (
        f"{os.environ[f'{CLUSTER}IMAGE'].rpartition('/')[0]}/nope:1" if runner.kind == "real" else "devcluster/does-not-exist:1"
    )
    done = runner.gang("run", "--size", "2", options=f"cpu=0.1,memory=200,disk=10,image={image},image_pull_timeout=3")
    assert done.code != 0
    lines = own_lines(done)
    assert f"can't get its image {image}" in lines
    assert "for 3 s (image_pull_timeout)" in lines, lines
    assert eventually(lambda: left_over(runner) == "", 60), left_over(runner)


def test_what_no_node_has_room_for_is_given_up_in_time(runner: Runner) -> None:
    done = runner.gang("run", "--size", "2", options="cpu=1000,memory=200,disk=10,launch_timeout=8")
    assert done.code != 0
    lines = own_lines(done)
    assert "within 8 s (launch_timeout): " in lines, lines
    assert "nodes are available: 1 Insufficient cpu." in lines, lines
    assert eventually(lambda: left_over(runner) == "", 60), left_over(runner)


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
