"""A PodGroup is there before its workload, is the workload's own afterwards, and never stays alone."""

from __future__ import annotations

from metaflow_extensions.kubernetes_ext.cluster.protocol import Resource
from metaflow_extensions.kubernetes_ext.errors import Forbidden
from metaflow_extensions.kubernetes_ext.manifests.manifest import Manifest
from metaflow_extensions.kubernetes_ext.manifests.pod_group import pod_group
from metaflow_extensions.kubernetes_ext.runtime.pod_groups import PodGroups
from metaflow_extensions.kubernetes_ext.spec import labels
from tests.builders import make_spec
from tests.fakes import FakeClock, FakeCluster

GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")


def group(name: str = "gang") -> Manifest:
    made = pod_group(make_spec(4, name=name, gang="coscheduling", annotations={labels.SUBMISSION: "mine"}))
    assert made is not None
    return made


def workload(name: str) -> Manifest:
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": name, "uid": "u1"}}


def there(cluster: FakeCluster) -> dict[str, list[str]]:
    """The owners of each group, by its name."""
    items = cluster.list(GROUPS, "default")["items"]
    return {one["metadata"]["name"]: [owner["uid"] for owner in one["metadata"].get("ownerReferences", [])] for one in items}


def test_a_group_becomes_its_workload_s_and_one_of_a_name_given_up_goes() -> None:
    cluster, told = FakeCluster(), list[str]()
    groups = PodGroups(cluster, FakeClock(), told.append)
    groups.post(group("first"))
    groups.post(group("second"))
    assert there(cluster) == {"first": [], "second": []}
    groups.adopt(workload("second"))
    assert there(cluster) == {"second": ["u1"]}
    assert told == []


def test_without_a_workload_none_stays() -> None:
    cluster = FakeCluster()
    groups = PodGroups(cluster, FakeClock(), print)
    groups.post(group())
    groups.withdraw()
    assert there(cluster) == {}


def test_somebody_else_s_group_of_that_name_is_not_deleted() -> None:
    cluster = FakeCluster()
    other = group()
    other["metadata"]["annotations"] = {labels.SUBMISSION: "theirs"}
    groups = PodGroups(cluster, FakeClock(), print)
    groups.post(group())
    cluster.update(GROUPS, other)
    groups.withdraw()
    assert list(there(cluster)) == ["gang"]


def test_what_can_not_be_given_or_deleted_is_told_with_the_command() -> None:
    cluster, told = FakeCluster(), list[str]()
    groups = PodGroups(cluster, FakeClock(), told.append)
    groups.post(group())
    cluster.fail("patch", "podgroups", Forbidden("You may not."))
    groups.adopt(workload("gang"))
    groups.post(group("again"))
    cluster.fail("delete", "podgroups", Forbidden("You may not."))
    groups.withdraw()
    assert told == [
        "PodGroup gang will stay when JobSet gang is gone: You may not. "
        "Then run: kubectl delete podgroups.scheduling.x-k8s.io gang --namespace default",
        "PodGroup again stays: You may not. "
        "When this is solved, run: kubectl delete podgroups.scheduling.x-k8s.io again --namespace default",
    ]
