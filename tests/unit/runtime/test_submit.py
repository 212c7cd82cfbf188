"""Creating exactly once, whatever the network does with the answers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.backends.base import Manifest
from metaflow_extensions.kubernetes_ext.errors import ClusterError, Conflict, Forbidden, NotFound, Rejected, Unavailable
from metaflow_extensions.kubernetes_ext.runtime.submit import is_ours, stamped, submit, withdraw
from metaflow_extensions.kubernetes_ext.spec import labels
from tests.fakes import FakeClock, FakeCluster
from tests.unit.runtime.workloads import BACKEND, JOBSETS, NAME, manifest


def lost(code: int | None = None) -> Unavailable:
    return Unavailable("no answer", status=code)


def send(cluster: FakeCluster, clock: FakeClock | None = None, **options: Any) -> dict[str, Any]:
    return submit(cluster, BACKEND, manifest(), namespace="default", clock=clock or FakeClock(), **options)


class Lossy(FakeCluster):
    """Creates, and loses the answers of the first `lose` creates."""

    def __init__(self, lose: int) -> None:
        super().__init__()
        self._lose = lose

    def create(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        created = super().create(*args, **kwargs)
        if self._lose:
            self._lose -= 1
            raise lost()
        return created


def renamed(old: Manifest) -> Manifest:
    return {**old, "metadata": {**old["metadata"], "name": old["metadata"]["name"] + "-x"}}


def test_what_is_created_is_returned() -> None:
    cluster = FakeCluster()
    created = send(cluster)
    assert created["metadata"]["uid"]
    assert dict(cluster.requests) == {("create", "jobsets"): 1}


@pytest.mark.parametrize("code", [None, 429, 500, 503, 504])
def test_what_passes_is_retried(code: int | None) -> None:
    cluster, clock, heard = FakeCluster(), FakeClock(), []
    cluster.fail("create", "jobsets", lost(code), lost(code))
    send(cluster, clock, on_trouble=heard.append)
    assert cluster.names(JOBSETS) == [NAME]
    assert cluster.requests["create", "jobsets"] == 3
    assert [type(one) for one in heard] == [Unavailable, Unavailable, type(None)]


def test_a_lost_answer_never_makes_a_second_object() -> None:
    cluster = Lossy(lose=1)
    created = send(cluster)
    assert cluster.names(JOBSETS) == [NAME]
    assert created == cluster.get(JOBSETS, "default", NAME)
    assert cluster.requests["create", "jobsets"] == 1


def test_a_lost_create_that_takes_effect_late_is_adopted() -> None:
    cluster = Lossy(lose=1)
    cluster.fail("get", "jobsets", NotFound("not yet", status=404))
    assert send(cluster)["metadata"]["name"] == NAME
    assert cluster.names(JOBSETS) == [NAME]


def test_a_lost_create_that_used_up_the_quota_is_adopted() -> None:
    cluster = FakeCluster()
    cluster.update(JOBSETS, manifest())
    cluster.fail("create", "jobsets", lost(), Rejected("exceeded quota", status=403))
    cluster.fail("get", "jobsets", NotFound("a stale read", status=404))
    assert send(cluster)["metadata"]["name"] == NAME


def somebody_elses() -> Manifest:
    other = manifest()
    other["metadata"]["annotations"] = {labels.SUBMISSION: "theirs"}
    return other


def test_somebody_elses_object_gets_out_of_our_way_by_another_name() -> None:
    cluster = FakeCluster()
    theirs = cluster.update(JOBSETS, somebody_elses())
    created = send(cluster, rename=renamed)
    assert created["metadata"]["name"] == f"{NAME}-x"
    assert cluster.get(JOBSETS, "default", NAME) == theirs


def test_without_another_name_somebody_elses_object_is_a_conflict() -> None:
    cluster, clock = FakeCluster(), FakeClock()
    cluster.update(JOBSETS, somebody_elses())
    with pytest.raises(Conflict, match=rf"JobSet {NAME} in namespace default exists already and is not of this run"):
        send(cluster, clock)
    assert clock.slept == []


def test_an_object_that_is_being_deleted_is_waited_for() -> None:
    cluster, clock = FakeCluster(), FakeClock()
    going = somebody_elses()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T12:00:00Z"
    cluster.update(JOBSETS, going)
    clock.at(20, lambda: cluster.remove(JOBSETS, NAME))
    assert is_ours(send(cluster, clock, rename=renamed), manifest())
    assert cluster.names(JOBSETS) == [NAME]


@pytest.mark.parametrize("error", [Rejected("422"), Forbidden("403"), NotFound("JobSet is not installed")])
def test_what_can_not_heal_fails_at_once(error: ClusterError) -> None:
    cluster, clock = FakeCluster(), FakeClock()
    cluster.fail("create", "jobsets", error)
    with pytest.raises(type(error), match=str(error)):
        send(cluster, clock)
    assert clock.slept == []
    assert dict(cluster.requests) == {("create", "jobsets"): 1}


def test_patience_ends_with_how_to_clean_up() -> None:
    cluster, clock = FakeCluster(), FakeClock()
    cluster.fail("create", "jobsets", *[lost()] * 100)
    with pytest.raises(Unavailable, match=f"`kubectl delete jobsets.jobset.x-k8s.io {NAME} --namespace default` removes it"):
        send(cluster, clock, patience=60)
    assert 30 < clock.monotonic() <= 60


def test_retry_after_is_waited_for() -> None:
    cluster, clock = FakeCluster(), FakeClock()
    cluster.fail("create", "jobsets", Unavailable("busy", status=429, retry_after=40.0))
    send(cluster, clock)
    assert clock.monotonic() >= 40


def test_a_manifest_without_a_submission_gets_one_of_its_own() -> None:
    first, second = stamped({"metadata": {"name": "a"}}), stamped({"metadata": {"name": "a"}})
    assert not is_ours(first, second)
    assert is_ours(first, stamped(first))
    assert not is_ours({"metadata": {}}, {"metadata": {}})


def unknown(*fields: str) -> Rejected:
    text = "strict decoding error: " + ", ".join(f'unknown field "{field}"' for field in fields)
    return Rejected(text, status=400, reason="BadRequest", body={"message": text})


def test_fields_that_an_older_server_does_not_know_are_taken_out_and_it_is_tried_again() -> None:
    cluster, heard = FakeCluster(), []

    def without(old: Manifest, fields: Collection[str]) -> Manifest:
        heard.append(fields)
        return {**old, "spec": {}}

    cluster.fail("create", "jobsets", unknown("spec.network.x", "spec.replicatedJobs[0].y"))
    created = send(cluster, without=without)
    assert heard == [("spec.network.x", "spec.replicatedJobs.y")]
    assert created["spec"] == {}
    assert cluster.requests["create", "jobsets"] == 2


def test_an_unknown_field_is_final_where_nobody_can_take_it_out() -> None:
    cluster = FakeCluster()
    cluster.fail("create", "jobsets", unknown("spec.x"))
    with pytest.raises(Rejected, match="unknown field"):
        send(cluster)


def test_what_an_interrupted_submission_created_is_taken_back() -> None:
    cluster = FakeCluster()
    posted = stamped(manifest())
    cluster.create(JOBSETS, "default", posted)
    withdraw(cluster, BACKEND, posted, namespace="default")
    assert cluster.names(JOBSETS) == []
    withdraw(cluster, BACKEND, posted, namespace="default")


def test_somebody_else_s_object_of_that_name_is_left_alone() -> None:
    cluster = FakeCluster()
    theirs = stamped({**manifest(), "metadata": {"name": NAME}})
    cluster.create(JOBSETS, "default", theirs)
    withdraw(cluster, BACKEND, stamped(manifest()), namespace="default")
    assert cluster.names(JOBSETS) == [NAME]
