"""Roles and ranks of pods, for every shape of gang."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.status.layout import Place, job_layout, jobset_layout, layout_of_pods
from tests.builders_objects import make_gang_pods, make_jobset, make_plain_job, make_pod


def place(role: str, rank: int, index: int) -> Place:
    return Place(role=role, rank=rank, index=index)


@pytest.mark.parametrize("shape", ["s1", "s2"])
@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        pytest.param({"control": 1, "worker": 3}, [("control", 0), ("worker", 0), ("worker", 1), ("worker", 2)], id="a gang"),
        pytest.param(
            {"worker": 2, "control": 1}, [("control", 0), ("worker", 0), ("worker", 1)], id="control is 0 wherever it stands"
        ),
        pytest.param({"control": 1}, [("control", 0)], id="a gang of one"),
        pytest.param(
            {"a": 2, "b": 1, "c": 2}, [("a", 0), ("a", 1), ("b", 0), ("c", 0), ("c", 1)], id="other names, in their order"
        ),
        pytest.param({"gang": 4}, [("gang", 0), ("gang", 1), ("gang", 2), ("gang", 3)], id="one group"),
    ],
)
def test_ranks(shape: str, groups: dict[str, int], expected: list[tuple[str, int]]) -> None:
    layout = jobset_layout(make_jobset(groups=groups, shape=shape))
    wanted = [place(role, rank, index) for rank, (role, index) in enumerate(expected)]
    assert (list(layout.places()), layout.size) == (wanted, len(expected))
    pods = [make_pod(role, index, shape=shape) for role, index in expected]
    assert [layout.place(pod) for pod in pods] == wanted
    assert [layout.place_of_pod_name(pod["metadata"]["name"]) for pod in pods] == wanted


def test_several_jobs_of_several_pods() -> None:
    jobset = make_jobset(groups={"worker": 3}, shape="s1", job_spec={"completions": 2})
    pod = make_pod("worker", 2, shape="s1")
    pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = "1"
    assert jobset_layout(jobset).place(pod) == place("worker", 5, 5)


def test_the_size_of_a_job_is_completions_else_parallelism_else_one() -> None:
    sizes = [
        jobset_layout(make_jobset(groups={"w": 1}, job_spec=spec)).size
        for spec in ({"completions": 5}, {"completions": None, "parallelism": 2})
    ]
    assert sizes == [5, 2]
    assert jobset_layout({"spec": {"replicatedJobs": [{"name": "w"}]}}).size == 1


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod("stranger"), id="an unknown group"),
        pytest.param(make_pod("worker", 3), id="beyond its group"),
        pytest.param({}, id="nothing"),
        pytest.param({"metadata": {"labels": ["worker"]}}, id="labels of a wrong type"),
    ],
)
def test_pods_without_a_place(pod: dict[str, Any]) -> None:
    assert jobset_layout(make_jobset()).place(pod) is None


@pytest.mark.parametrize(
    "name", ["", "js-1-worker-0-0", "js-1-stranger-0-0-abcde", "js-2-worker-0-0-abcde", "js-1-worker-x-0-abcde"]
)
def test_names_without_a_place(name: str) -> None:
    assert jobset_layout(make_jobset()).place_of_pod_name(name) is None


def test_a_plain_job() -> None:
    layout = job_layout(make_plain_job())
    assert layout.place({"metadata": {"name": "js-1-abcde"}}) == place("task", 0, 0)
    assert layout.place_of_pod_name("js-1-abcde") == place("task", 0, 0)
    assert layout.place_of_job_name("js-1") == ("task", place("task", 0, 0))


def test_an_indexed_job() -> None:
    layout = job_layout(make_plain_job(completions=3))
    pod = make_pod(index=2, plain=True)
    assert layout.place(pod) == layout.place_of_pod_name(pod["metadata"]["name"]) == place("task", 2, 2)


def test_job_names_tell_the_rank_only_of_jobs_of_one_pod() -> None:
    assert jobset_layout(make_jobset(shape="s1")).place_of_job_name("js-1-worker-2") == ("worker", place("worker", 3, 2))
    assert jobset_layout(make_jobset()).place_of_job_name("js-1-worker-0") == ("worker", None)
    assert jobset_layout(make_jobset()).place_of_job_name("other") == ("", None)


@pytest.mark.parametrize("shape", ["s1", "s2"])
def test_pods_alone_tell_the_ranks_when_the_jobset_is_gone(shape: str) -> None:
    layout = layout_of_pods(make_gang_pods(shape=shape))
    assert list(layout.places()) == list(jobset_layout(make_jobset()).places())
