"""Gangs that end well: every rank's ids, environment, artifacts, metadata and logs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.flows.conftest import ON_BOTH_S3, Runner

READ_RUN = """
import json
from metaflow import Flow, namespace
namespace(None)
run = list(Flow({flow!r}).runs())[{back}]
step = run[{step!r}]
print(json.dumps({{
    "successful": run.successful,
    "data": {{name: repr(getattr(run[{join!r}].task.data, name)) for name in {names!r}}},
    "tasks": {{task.id: {{"stdout": task.stdout, "metadata": {{k: str(v) for k, v in task.metadata_dict.items()}}}} for task in step}},
}}))
"""


def read_run(
    runner: Runner, flow: str = "GangFlow", step: str = "train", join: str = "join", names: tuple[str, ...] = (), back: int = 0
) -> Any:
    """The latest run, or the one `back` before it, as Metaflow's own Client API shows it."""
    return json.loads(runner.python(READ_RUN.format(flow=flow, step=step, join=join, names=list(names), back=back)))


@ON_BOTH_S3
@pytest.mark.parametrize("size", [1, 2, 4, pytest.param(16, marks=pytest.mark.crowd)])
def test_a_gang_of_any_size(runner: Runner, size: int) -> None:
    done = runner.gang("run", "--size", str(size))
    assert done.code == 0, str(done)
    names = ("ranks", "sizes", "control_ids", "task_ids", "flags", "main_ips", "gang_tasks", "environments")
    run = read_run(runner, names=names)
    data = {name: eval(text) for name, text in run["data"].items()}
    control = next(iter(data["control_ids"]))
    ids = {0: control, **{rank: f"{control}-worker-{rank - 1}" for rank in range(1, size)}}
    assert data["ranks"] == list(range(size))
    assert data["sizes"] == {size}
    assert data["task_ids"] == ids
    assert data["flags"] == {True}
    assert len(data["main_ips"]) == 1
    assert [task["task_id"] for task in data["gang_tasks"]] == [ids[rank] for rank in range(size)]
    for task in data["gang_tasks"]:
        assert all(task[name] for name in ("pod", "node", "ip", "started", "finished")), task
        assert task["exit_code"] == 0
    assert set(run["tasks"]) == set(ids.values())
    for rank, task_id in ids.items():
        task = run["tasks"][task_id]
        assert f"hello from rank {rank} of {size}" in task["stdout"]
        assert task["metadata"]["gang-rank"] == str(rank)
        assert task["metadata"]["kubernetes-exit-code"] == "0"
        assert task["metadata"]["kubernetes-jobset-name"].startswith("gangflow-train-")
        assert data["environments"][rank]["MF_WORLD_SIZE"] == str(size)
        assert data["environments"][rank]["MF_PARALLEL_NODE_INDEX"] == str(rank)
        assert data["environments"][rank]["MF_PARALLEL_CONTROL_TASK_ID"] == control


def test_control_s_log_is_shown_as_it_comes_and_the_others_on_request(runner: Runner) -> None:
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes:cpu=0.1", "--size", "3")
    assert "[rank 0] hello from rank 0 of 3" in done.output
    assert "hello from rank 2" not in done.output
    done = runner.run("gang_flow.py", "run", "--with", "kubernetes:cpu=0.1,logs=all", "--size", "3")
    for rank in range(3):
        assert done.output.count(f"[rank {rank}] hello from rank {rank} of 3") == 1, str(done)


def test_decorators_on_a_gang_step(runner: Runner) -> None:
    done = runner.run("decorated_flow.py", "run", "--with", "kubernetes:cpu=0.1")
    assert done.code == 0, str(done)
    run = read_run(runner, "DecoratedFlow", names=("attempts", "variables", "secret", "memory_requests"))
    assert eval(run["data"]["attempts"]) == {1}
    assert eval(run["data"]["variables"]) == {'it\'s "odd" $HOME `id` \\ ü'}
    assert eval(run["data"]["secret"]) == {"hidden"}
    cards = runner.python(
        "from metaflow import Flow, namespace\nfrom metaflow.cards import get_cards\nnamespace(None)\n"
        "print([len(get_cards(task)) for task in Flow('DecoratedFlow').latest_run['train']])"
    )
    assert min(eval(cards)) >= 1, "ranks that were done in the failed attempt have a card of that, too"
    requested = runner.kubectl(
        "get", "pods", "-l", "metaflow.org/flow=DecoratedFlow,metaflow.org/step=train",
        "-o", "jsonpath={.items[*].spec.containers[0].resources.requests.memory}",
    )  # fmt: skip
    assert set(requested.split()) == {"5100M"}, "the larger of @resources and @kubernetes"


def test_a_decorator_that_knows_only_core_s_parallel_gets_a_working_gang(runner: Runner) -> None:
    """@torchrun, @deepspeed and others subclass core's decorator and read core's variables."""
    extensions = str(runner.home / "extensions")
    write_third_party_extension(extensions)
    done = runner.run("third_party_flow.py", "run", "--with", "kubernetes:cpu=0.1", PYTHONPATH=extensions)
    assert done.code == 0, str(done)
    assert "launched [(0, 3, True, '29500'), (1, 3, True, '29500'), (2, 3, True, '29500')]" in done.output


def write_third_party_extension(root: str) -> None:
    from pathlib import Path

    plugins = Path(root) / "metaflow_extensions" / "launcher" / "plugins"
    plugins.mkdir(parents=True)
    (plugins.parent / "__init__.py").write_text("")
    (plugins / "mfextinit_launcher.py").write_text('STEP_DECORATORS_DESC = [("launcher", ".launcher.LauncherDecorator")]\n')
    (plugins / "launcher.py").write_text(
        "import os\n"
        "from metaflow.plugins.parallel_decorator import ParallelDecorator\n"
        "class LauncherDecorator(ParallelDecorator):\n"
        '    name = "launcher"\n'
        "    defaults = {}\n"
        "    IS_PARALLEL = True\n"
        "    def setup_distributed_env(self, flow):\n"
        "        from metaflow import current\n"
        "        gang = current.parallel\n"
        "        flow.launched = (gang.node_index, gang.num_nodes, bool(gang.main_ip), os.environ['MF_MASTER_PORT'])\n"
    )


@pytest.mark.long
@pytest.mark.parametrize("size", [3])
def test_the_same_flow_on_s3_gives_the_same_artifacts(runner: Runner, s3: dict[str, str], size: int) -> None:
    """Local metadata has to come back through the datastore, from every rank."""
    runner.extra = {**s3, "METAFLOW_DEFAULT_DATASTORE": "s3", "METAFLOW_KUBERNETES_SHARED_FILES": ""}
    secret = [f"--from-literal={name}={value}" for name, value in s3.items() if name.startswith("AWS_")]
    runner.kubectl("create", "secret", "generic", "s3-access", *secret)
    options = "kubernetes:cpu=0.1,secrets=s3-access"
    done = runner.run("gang_flow.py", "run", "--with", options, "--size", str(size), METAFLOW_SKIP_INSTALL_DEPENDENCIES="1")
    assert done.code == 0, str(done)
    run = read_run(runner, names=("ranks", "before", "gang_tasks"))
    assert run["successful"]
    assert eval(run["data"]["ranks"]) == list(range(size))
    assert len(eval(run["data"]["gang_tasks"])) == size
    assert len(run["tasks"]) == size
    for task in run["tasks"].values():
        assert "hello from rank" in task["stdout"]
        assert task["metadata"]["ds-type"] == "s3"
        assert task["metadata"]["kubernetes-exit-code"] == "0"
