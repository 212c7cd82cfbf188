"""The examples do what they say on the development cluster."""

from __future__ import annotations

import importlib.util
import re
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.flows.conftest import ON_BOTH_S3, Runner

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def ranks_module() -> Iterator[ModuleType]:
    """examples/01-digits/ranks.py, whose directory's name no import statement takes."""
    spec = importlib.util.spec_from_file_location("digits_ranks", EXAMPLES / "01-digits" / "ranks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def test_digits_are_learned_by_four_ranks_as_by_one(runner: Runner) -> None:
    done = runner.run(str(EXAMPLES / "01-digits" / "flow.py"), "run", "--with", "kubernetes", timeout=600)

    assert done.code == 0, str(done)
    accuracy = re.search(r"accuracy (0\.\d+) .* weights within (\S+) of", done.output)
    assert accuracy, str(done)
    assert float(accuracy[1]) > 0.95
    assert float(accuracy[2]) < 1e-8
    shown = re.findall(r"\] (\d)\s+\d+(?:-worker-\d)? .*127\.", done.output)
    assert shown == ["0", "1", "2", "3"], done  # the table of current.gang.tasks

    card = runner.python(
        "from metaflow import Flow; from metaflow.cards import get_cards; "
        "print(get_cards(Flow('DigitsFlow').latest_run['evaluate'].task)[0].get())"
    )
    assert "vega-lite" in card


@pytest.mark.long
def test_a_sweep_keeps_the_best_setting(runner: Runner) -> None:
    done = runner.run(str(EXAMPLES / "02-sweep" / "flow.py"), "run", "--with", "kubernetes", "--folds", "2", timeout=600)

    assert done.code == 0, str(done)
    scores = [float(score) for score in re.findall(r"gamma=\S+ +accuracy (\S+)", done.output)]
    assert len(scores) == 9
    assert f"accuracy {max(scores):.4f}" in done.output.split("the best of 9 settings")[1]


def test_the_sum_is_the_same_on_every_rank_to_the_last_bit(ranks_module: ModuleType, port: int) -> None:
    mine = np.random.default_rng(1).normal(size=(5, 100))
    sums: dict[int, np.ndarray] = {}

    def one(rank: int) -> None:
        with ranks_module.Ranks(rank, 5, "127.0.0.1", port, "gang") as ranks:
            sums[rank] = ranks.sum(mine[rank])

    run_all(one, 5)

    expected = mine[0] + mine[1] + mine[2] + mine[3] + mine[4]
    assert all(np.array_equal(sums[rank], expected) for rank in range(5))


def test_a_lost_rank_is_named(ranks_module: ModuleType, port: int) -> None:
    errors: dict[int, str] = {}

    def one(rank: int) -> None:
        try:
            with ranks_module.Ranks(rank, 3, "127.0.0.1", port, "gang") as ranks:
                if rank != 2:
                    ranks.sum(np.zeros(1000))
        except ranks_module.GangError as error:
            errors[rank] = str(error)

    run_all(one, 3)

    assert errors[0].startswith("Rank 0 lost rank 2")
    assert errors[1].startswith("Rank 1 lost rank 0")


def test_a_stranger_at_the_door_is_sent_away(ranks_module: ModuleType, port: int) -> None:
    sums = {}

    def one(rank: int) -> None:
        gang = "another" if rank == 9 else "gang"
        try:
            with ranks_module.Ranks(1 if rank == 9 else rank, 2, "127.0.0.1", port, gang, patience=10) as ranks:
                sums[rank] = float(ranks.sum(np.ones(1))[0])
        except ranks_module.GangError:
            sums[rank] = -1.0

    stranger = threading.Thread(target=one, args=(9,))
    stranger.start()
    control = threading.Thread(target=one, args=(0,))
    control.start()
    stranger.join(timeout=60)
    one(1)
    control.join(timeout=60)

    assert sums == {9: -1.0, 0: 2.0, 1: 2.0}


def test_a_missing_rank_is_named(ranks_module: ModuleType, port: int) -> None:
    with pytest.raises(ranks_module.GangError, match=r"missing: \[1\]"):
        ranks_module.Ranks(0, 2, "127.0.0.1", port, "gang", patience=0.2)


def run_all(one: object, size: int) -> None:
    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


@ON_BOTH_S3
def test_a_gang_that_is_evicted_goes_on_from_its_checkpoint(runner: Runner) -> None:
    example = EXAMPLES / "04-preemption"
    runner.extra = {"METAFLOW_KUBERNETES_CPU": "0.1", "METAFLOW_KUBERNETES_MEMORY": "200", "METAFLOW_KUBERNETES_DISK": "10"}
    if runner.kind == "real":  # its user may not evict
        runner.environment["KUBECONFIG"] = str(runner.admin_config)
    done = runner.run(str(example / "execute.py"), timeout=400)
    assert done.code == 0, str(done)
    assert "--- evicted" in done.output
    assert "All 2 ranks start again (restart 1 of 3)." in done.output, str(done)
    begun = [int(step) for step in re.findall(r"rank \d at step (\d+)", done.output)]
    assert len(begun) == 2
    assert begun[1] >= 20, "rank 1 goes on where it was evicted"
    assert begun[0] > 0, "and rank 0 where it was stopped because of that"
