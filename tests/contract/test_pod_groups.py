"""PodGroups on the real API server and scheduler: taken, obeyed, and collected with their workload."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from metaflow_extensions.kubernetes_ext.backends.base import Backend
from metaflow_extensions.kubernetes_ext.backends.job import JobBackend
from metaflow_extensions.kubernetes_ext.backends.jobset import JobSetBackend
from metaflow_extensions.kubernetes_ext.cli.gang_choice import settled
from metaflow_extensions.kubernetes_ext.cluster.protocol import PODS
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.pod_group import pod_group
from metaflow_extensions.kubernetes_ext.runtime.clock import RealClock
from metaflow_extensions.kubernetes_ext.runtime.pod_groups import PodGroups, group_resource
from metaflow_extensions.kubernetes_ext.runtime.resources import resource_of
from metaflow_extensions.kubernetes_ext.runtime.running import RunningJobSet
from metaflow_extensions.kubernetes_ext.runtime.submit import submit
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.launch import LaunchSpec
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from metaflow_extensions.kubernetes_ext.status.model import Phase
from tests.contract import places
from tests.contract.places import Place
from tests.contract.stories import SMALL, Story
from tests.contract.waiting import until

pytestmark = pytest.mark.real
NODES = places.Resource("", "v1", "nodes", "Node", namespaced=False)


@pytest.fixture
def place(real: places.Server) -> Iterator[Place]:
    with real.place(roles=places.RBAC_WITH_ALL) as found:
        yield found


def in_one_job(place: Place, gang: str, resources: Resources = SMALL) -> LaunchSpec:
    """Three ranks in an Indexed Job, whose pods can name a PodGroup of Kubernetes; those of a JobSet can't yet."""
    spec = Story(size=0, command="sleep 2", resources=resources).spec(place)
    (group,) = spec.groups
    return replace(spec, gang=gang, groups=(replace(group, replicas=3),), annotations={labels.SUBMISSION: "s"})


def started(place: Place, spec: LaunchSpec, backend: Backend) -> RunningJobSet:
    """The group first, then the workload, which then owns it."""
    groups, group = PodGroups(place.client, RealClock(), pytest.fail), pod_group(spec)
    assert group is not None
    groups.post(group)
    created = submit(place.client, backend, backend.build(spec), namespace=place.namespace, clock=RealClock())
    groups.adopt(created)
    return RunningJobSet(place.client, backend, created, namespace=place.namespace)


def group_is_gone(place: Place, spec: LaunchSpec) -> bool:
    group = pod_group(spec)
    assert group is not None
    return not place.admin.list(group_resource(group), place.namespace)["items"]


@pytest.mark.parametrize(
    ("gang", "backend"), [("native", JobBackend()), ("coscheduling", JobBackend()), ("coscheduling", JobSetBackend())]
)
def test_a_gang_in_a_pod_group_ends_well_and_takes_the_group_with_it(place: Place, gang: str, backend: Backend) -> None:
    spec = in_one_job(place, gang)
    with started(place, spec, backend) as running:
        assert running.wait().phase is Phase.SUCCEEDED
    for pod in place.pods():
        in_group = pod["spec"].get("schedulingGroup", {}).get("podGroupName") or pod["metadata"]["labels"].get(
            labels.COSCHEDULING_GROUP
        )
        assert in_group == spec.name
    place.client.delete(resource_of(backend), place.namespace, spec.name)
    until(lambda: group_is_gone(place, spec), "the group is collected")


def test_where_there_is_no_room_for_all_none_starts(place: Place) -> None:
    """Two of three would fit."""
    (node,) = (one for one in place.admin.list(NODES, "")["items"] if not one["spec"].get("taints"))
    cores = int(node["status"]["allocatable"]["cpu"])
    spec = in_one_job(place, "native", Resources(cpu=f"{cores * 1000 * 2 // 5}m", memory="32Mi"))
    with started(place, spec, JobBackend()):
        until(lambda: len(place.pods()) == 3, "its pods are there")
        until(lambda: all(map(reason, place.pods())), "the scheduler has looked at each")
        assert {reason(pod) for pod in place.pods()} == {"Unschedulable"}
        assert [pod["spec"].get("nodeName") for pod in place.client.list(PODS, place.namespace)["items"]] == [None] * 3


def reason(pod: dict[str, object]) -> str:
    conditions = pod["status"].get("conditions") or ()  # type: ignore[attr-defined]
    return next((one.get("reason", "") for one in conditions if one["type"] == "PodScheduled"), "")


def test_what_is_asked_for_and_can_not_be_had_is_said(place: Place) -> None:
    gang = replace(Story(size=2).spec(place), gang="native")
    with pytest.raises(InvalidSpec, match="gang is native, but JobSet here has no place for a pod's PodGroup"):
        settled(place.client, gang, JobSetBackend())


def test_auto_takes_what_this_cluster_has(place: Place) -> None:
    assert settled(place.client, in_one_job(place, "auto"), JobBackend())[0] == "native"
    gang, why = settled(place.client, replace(Story(size=2).spec(place), gang="auto"), JobSetBackend())
    assert gang == "none"
    assert why == (
        "no scheduler is named that could have the coscheduling plugin; JobSet here has no place for a pod's PodGroup"
    )
