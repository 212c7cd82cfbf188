"""Which gang scheduling a workload gets: what was asked for, or with `auto` what the cluster serves, and why."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cli.gang_choice import settled
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, Resource
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec, Rejected
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.placement import Placement
from tests.builders import make_gang, make_spec
from tests.fakes import FakeCluster

JOBSETS = resource_of(JobSetBackend())
COSCHEDULING = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
NATIVE = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup")
NO_PLACE = Rejected('strict decoding error: unknown field "spec.replicatedJobs[0].template.spec.template.spec.schedulingGroup"')


def choice(
    gang: str | None, *served: Resource, queue: str = "", scheduler: str | None = None, size: int = 4, takes_native: bool = True
) -> tuple[str | None, str]:
    cluster = FakeCluster(served=(JOBS, JOBSETS, *served))
    if not takes_native:
        cluster.fail("create", "jobsets", NO_PLACE)
    groups = make_gang(size, placement=Placement(scheduler=scheduler))
    spec = make_spec(groups=groups, gang=gang, labels={labels.KUEUE_QUEUE: queue} if queue else {})
    return settled(cluster, spec, JobSetBackend())


@pytest.mark.parametrize("gang", [None, "none"])
def test_nobody_is_asked_for(gang: str | None) -> None:
    assert choice(gang, COSCHEDULING, NATIVE)[0] == gang


@pytest.mark.parametrize("gang", ["coscheduling", "native", "auto"])
def test_one_rank_is_no_gang(gang: str) -> None:
    assert choice(gang, COSCHEDULING, NATIVE, size=1) == (None, "")


@pytest.mark.parametrize(("gang", "served"), [("coscheduling", COSCHEDULING), ("native", NATIVE)])
def test_what_is_asked_for_is_what_it_gets(gang: str, served: Resource) -> None:
    assert choice(gang, served) == (gang, "")


@pytest.mark.parametrize(
    ("gang", "text"),
    [
        ("coscheduling", r"does not serve scheduling.x-k8s.io/v1alpha1 PodGroups. Install the scheduler plugins"),
        ("native", r"does not serve scheduling.k8s.io/v1beta1 PodGroups. They are Kubernetes' own from 1.37 on"),
    ],
)
def test_what_is_not_served_is_refused_with_what_to_do(gang: str, text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        choice(gang)


def test_native_in_a_workload_that_can_not_name_a_pod_group_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="gang is native, but JobSet here has no place for a pod's PodGroup"):
        choice("native", NATIVE, takes_native=False)


def test_kueue_needs_a_queue() -> None:
    assert choice("kueue", queue="team") == ("kueue", "")
    with pytest.raises(InvalidSpec, match="it needs `queue`"):
        choice("kueue")


@pytest.mark.parametrize(
    ("served", "fields", "expected", "why"),
    [
        pytest.param((COSCHEDULING, NATIVE), {"queue": "team"}, "kueue", "queue team", id="a queue"),
        pytest.param(
            (COSCHEDULING, NATIVE), {"scheduler": "gang"}, "coscheduling", "or none", id="a scheduler with the plugin"
        ),
        pytest.param((COSCHEDULING, NATIVE), {}, "native", "or none", id="no scheduler is named"),
        pytest.param((NATIVE,), {"scheduler": "gang"}, "native", "or none", id="the named scheduler has no plugin"),
        pytest.param(
            (COSCHEDULING,),
            {},
            "none",
            "no scheduler is named that could have the coscheduling plugin; Kubernetes' own",
            id="old",
        ),
        pytest.param((NATIVE,), {"takes_native": False}, "none", "JobSet here has no place", id="an old JobSet"),
        pytest.param((), {"scheduler": "gang"}, "none", "no PodGroups of the coscheduling plugin are served", id="nothing"),
    ],
)
def test_auto_takes_what_there_is_and_says_why(
    served: tuple[Resource, ...], fields: dict[str, object], expected: str, why: str
) -> None:
    gang, reason = choice("auto", *served, **fields)  # type: ignore[arg-type]
    assert gang == expected
    assert why in reason
