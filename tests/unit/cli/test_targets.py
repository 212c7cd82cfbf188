"""What a user types to name workloads."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from metaflow.exception import MetaflowException

from metaflow_extensions.kubernetes_ext.backends.appwrapper import AppWrapperBackend
from metaflow_extensions.kubernetes_ext.backends.base import Wrapping
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cli.targets import Found, Target, parse, selector, workloads
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, Resource
from metaflow_extensions.kubernetes_ext.errors import Forbidden
from metaflow_extensions.kubernetes_ext.manifests.appwrapper import appwrapper
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.spec import labels
from tests.builders import make_gang, make_spec
from tests.fakes import FakeCluster

JOBSETS = resource_of(JobSetBackend())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("12", Target("12"), id="a run"),
        pytest.param("12/train", Target("12", "train"), id="a step"),
        pytest.param("12/train/3", Target("12", "train", "3"), id="a task"),
        pytest.param("MyFlow/12/train", Target("12", "train"), id="with the flow"),
        pytest.param("12/train/3-worker-1", Target("12", "train", "3", 2), id="a worker is a rank of its gang"),
        pytest.param("MyFlow", Target("MyFlow"), id="a run could be called so"),
    ],
)
def test_parse(text: str, expected: Target) -> None:
    assert parse("MyFlow", text) == expected


@pytest.mark.parametrize("text", ["", "1//2", "1/2/3/4", "/"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(MetaflowException, match="is not RUN, RUN/STEP or RUN/STEP/TASK"):
        parse("MyFlow", text)


def test_a_selector_has_only_what_is_asked_for() -> None:
    found = selector("MyFlow", Target("12", "train"), None, "team=a")
    assert found.split(",") == [
        "app.kubernetes.io/managed-by=metaflow-kubernetes-ext",
        "metaflow.org/flow=MyFlow",
        "metaflow.org/run-id=12",
        "metaflow.org/step=train",
        "team=a",
    ]


WRAPPERS = resource_of(AppWrapperBackend())
OURS = {labels.FLOW: "F"}


def cluster_with_everything() -> FakeCluster:
    """A JobSet, one that an AppWrapper has made, a Job of it and one of nobody, all labelled as ours."""
    cluster = FakeCluster(served=(WRAPPERS, JOBSETS, JOBS))
    wrapper = appwrapper(make_spec(groups=make_gang(2)), JobSetBackend().build(make_spec(groups=make_gang(2))))
    wrapper["metadata"] = {"name": "whole", "namespace": "default", "uid": "u-whole", "labels": OURS}

    def put(resource: Resource, name: str, owner: str = "") -> None:
        owners = [{"kind": "?", "name": "?", "uid": owner, "controller": True}] if owner else []
        metadata = {"name": name, "namespace": "default", "uid": f"u-{name}", "labels": OURS, "ownerReferences": owners}
        cluster.update(resource, {"metadata": metadata, "spec": {}})

    cluster.update(WRAPPERS, wrapper)
    put(JOBSETS, "whole", owner="u-whole")
    put(JOBSETS, "gang")
    put(JOBS, "gang-control-0", owner="u-gang")
    put(JOBS, "plain")
    return cluster


def names(found: Iterable[Found]) -> list[tuple[str, str, str]]:
    return [(one.backend.kind, one.workload["metadata"]["name"], (one.wrapped or {"kind": "nothing"})["kind"]) for one in found]


def test_what_another_workload_has_made_is_none_of_its_own() -> None:
    found = list(workloads(cluster_with_everything(), "metaflow.org/flow=F", "default"))
    assert names(found) == [("AppWrapper", "whole", "JobSet"), ("JobSet", "gang", "nothing"), ("Job", "plain", "nothing")]
    assert isinstance(found[0].backend, Wrapping)
    assert found[0].backend.wrapped.kind == "JobSet"


def test_who_may_not_look_at_appwrappers_sees_the_rest() -> None:
    cluster = cluster_with_everything()
    cluster.fail("list", "appwrappers", Forbidden("you may not"))
    assert names(workloads(cluster, "metaflow.org/flow=F", "default")) == [
        ("JobSet", "gang", "nothing"),
        ("Job", "plain", "nothing"),
    ]


def test_a_cluster_without_any_of_them_has_only_jobs() -> None:
    cluster = cluster_with_everything()
    cluster.served = ()
    assert names(workloads(cluster, "metaflow.org/flow=F", "default")) == [("Job", "plain", "nothing")]
