"""The store: versions, generations, finalizers, deletion, history."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaflow_devcluster import errors
from metaflow_devcluster.resources import jobset_resource, served_resources
from metaflow_devcluster.store import Change, Store, clone

Object = dict[str, Any]
NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)


def make_store(**options: Any) -> Store:
    return Store(served_resources(jobset=jobset_resource()), now=lambda: NOW, **options)


def config_map(name: str = "a", **meta: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "n", **meta}, "data": {"k": "v"}}


def pod(name: str = "p", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "n"}, "spec": {"nodeName": "node", **spec}}


def test_a_created_object_has_identity_version_and_time() -> None:
    made = make_store().create("configmaps", config_map())
    meta = made["metadata"]
    assert (made["kind"], made["apiVersion"], meta["resourceVersion"]) == ("ConfigMap", "v1", "2")
    assert meta["creationTimestamp"] == "2026-01-02T03:04:05Z"
    assert meta["uid"]
    assert "generation" not in meta


@pytest.mark.parametrize(
    ("resource", "change", "generation"),
    [
        pytest.param("pods", {"spec": {"x": 1}}, 2, id="spec of a pod"),
        pytest.param("pods", {"status": {"x": 1}}, 1, id="status of a pod"),
        pytest.param("jobs.batch", {"metadata": {"labels": {"a": "b"}}}, 1, id="labels"),
        pytest.param("jobsets.jobset.x-k8s.io", {"other": 1}, 2, id="any field of a custom resource"),
        pytest.param("jobsets.jobset.x-k8s.io", {"status": {"restarts": 1}}, 1, id="status of a custom resource"),
    ],
)
def test_the_generation_counts_changes_of_what_is_wanted(resource: str, change: Object, generation: int) -> None:
    store = make_store()
    store.create(resource, {"metadata": {"name": "a", "namespace": "n"}, "spec": {}})

    def apply(obj: Object) -> None:
        for key, value in change.items():
            obj[key] = {**obj.get(key, {}), **value} if isinstance(value, dict) else value

    assert store.modify(resource, "n", "a", apply)["metadata"]["generation"] == generation


def test_generate_name_is_completed_with_five_characters() -> None:
    meta = make_store().create("configmaps", {"metadata": {"generateName": "x-", "namespace": "n"}})["metadata"]
    assert meta["generateName"] == "x-"
    assert len(meta["name"]) == 7
    assert set(meta["name"][2:]) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_the_same_name_again_is_refused_and_says_when_the_first_is_being_deleted() -> None:
    store = make_store()
    store.create("configmaps", config_map(finalizers=["a.b/c"]))
    with pytest.raises(errors.AlreadyExists, match=r'^configmaps "a" already exists$'):
        store.create("configmaps", config_map())
    store.delete("configmaps", "n", "a")
    with pytest.raises(errors.AlreadyExists, match=r'^object is being deleted: configmaps "a" already exists$'):
        store.create("configmaps", config_map())


def test_a_write_that_changes_nothing_keeps_the_version_and_makes_no_change() -> None:
    store = make_store()
    made = store.create("configmaps", config_map())
    with store.subscribe("configmaps") as changes:
        assert store.update("configmaps", clone(made)) is made
        assert changes.pending() == []


def test_a_stale_update_conflicts() -> None:
    store = make_store()
    first = store.create("configmaps", config_map())
    store.update("configmaps", {**first, "data": {"k": "2"}})
    with pytest.raises(errors.Conflict, match="the object has been modified"):
        store.update("configmaps", {**first, "data": {"k": "3"}})


def test_an_update_of_the_status_leaves_the_rest() -> None:
    store = make_store()
    made = store.create("pods", pod())
    updated = store.update("pods", {**made, "spec": {"other": 1}, "status": {"phase": "Running"}}, status_only=True)
    assert (updated["spec"], updated["status"]) == ({"nodeName": "node"}, {"phase": "Running"})


def test_identity_and_deletion_marks_are_not_taken_from_an_update() -> None:
    store = make_store()
    made = store.create("pods", pod())
    meta = {"name": "p", "namespace": "n", "creationTimestamp": "x", "deletionTimestamp": "y", "generation": 9}
    updated = store.update("pods", {"metadata": meta, "spec": {"nodeName": "node", "a": 1}})
    assert updated["metadata"] == {**made["metadata"], "generation": 2, "resourceVersion": "3"}


def test_an_object_without_finalizers_goes_at_once() -> None:
    store = make_store()
    store.create("configmaps", config_map())
    store.delete("configmaps", "n", "a")
    assert store.find("configmaps", "n", "a") is None
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        store.get("configmaps", "n", "a")


def test_finalizers_hold_an_object_until_the_last_is_removed() -> None:
    store = make_store()
    store.create("configmaps", config_map(finalizers=["a.b/c"]))
    held = store.delete("configmaps", "n", "a")["metadata"]
    assert (held["deletionTimestamp"], held["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:05Z", 0)
    store.modify("configmaps", "n", "a", lambda obj: obj["metadata"].pop("finalizers"))
    assert store.find("configmaps", "n", "a") is None


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None), (None, None)],
)
def test_propagation_is_a_finalizer_for_the_garbage_collector(policy: str | None, finalizers: list[str] | None) -> None:
    store = make_store()
    store.create("configmaps", config_map())
    store.delete("configmaps", "n", "a", propagation=policy)
    left = store.find("configmaps", "n", "a")
    assert (left["metadata"]["finalizers"] if left else None) == finalizers


def test_jobs_orphan_their_pods_unless_told_otherwise() -> None:
    store = make_store()
    store.create("jobs.batch", {"metadata": {"name": "j", "namespace": "n"}, "spec": {}})
    assert store.delete("jobs.batch", "n", "j")["metadata"]["finalizers"] == ["orphan"]
    store.delete("jobs.batch", "n", "j", propagation="Background")
    assert store.find("jobs.batch", "n", "j") is None


@pytest.mark.parametrize(
    ("spec", "status", "wanted", "grace"),
    [
        pytest.param({}, {}, None, 30, id="default"),
        pytest.param({"terminationGracePeriodSeconds": 5}, {}, None, 5, id="of the pod"),
        pytest.param({"terminationGracePeriodSeconds": 5}, {}, 7, 7, id="of the request"),
        pytest.param({}, {}, 0, None, id="none"),
        pytest.param({"nodeName": ""}, {}, None, None, id="without node"),
        pytest.param({}, {"phase": "Succeeded"}, None, None, id="ended"),
    ],
)
def test_a_pod_stays_for_its_grace_period(spec: Object, status: Object, wanted: int | None, grace: int | None) -> None:
    store = make_store()
    store.create("pods", {**pod(**spec), "status": status})
    store.delete("pods", "n", "p", grace_seconds=wanted)
    left = store.find("pods", "n", "p")
    assert (left["metadata"]["deletionGracePeriodSeconds"] if left else None) == grace


def test_a_second_deletion_only_shortens_the_grace_period() -> None:
    store = make_store()
    store.create("pods", pod())
    store.delete("pods", "n", "p", grace_seconds=10)
    longer = store.delete("pods", "n", "p", grace_seconds=20)["metadata"]
    shorter = store.delete("pods", "n", "p", grace_seconds=3)["metadata"]
    assert (longer["deletionGracePeriodSeconds"], shorter["deletionGracePeriodSeconds"]) == (10, 3)
    assert shorter["generation"] == 2


def test_the_node_removes_a_pod_and_finalizers_still_hold_it_after_grace_zero() -> None:
    store = make_store()
    store.create("pods", {**pod(), "metadata": {"name": "p", "namespace": "n", "finalizers": ["a.b/c"]}})
    store.delete("pods", "n", "p")
    held = store.delete("pods", "n", "p", grace_seconds=0)["metadata"]
    assert (held["finalizers"], held["deletionGracePeriodSeconds"]) == (["a.b/c"], 0)
    assert store.remove("pods", "n", "p")["metadata"]["name"] == "p"
    assert store.list("pods") == []


def test_preconditions_protect_another_object_of_the_same_name() -> None:
    store = make_store()
    store.create("configmaps", config_map())
    with pytest.raises(errors.Conflict, match=r"the UID in the precondition \(zz\) does not match the UID in record"):
        store.delete("configmaps", "n", "a", preconditions={"uid": "zz"})
    with pytest.raises(errors.Conflict, match=r"the ResourceVersion in the precondition \(1\) does not match"):
        store.delete("configmaps", "n", "a", preconditions={"resourceVersion": "1"})


def test_a_namespace_terminates_and_waits_for_its_own_finalizers() -> None:
    store = make_store()
    store.create("namespaces", {"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": {}})
    left = store.delete("namespaces", None, "n")
    assert (left["status"], left["spec"]) == ({"phase": "Terminating"}, {"finalizers": ["kubernetes"]})
    store.modify("namespaces", None, "n", lambda obj: obj["spec"].clear())
    assert store.find("namespaces", None, "n") is None


def test_lists_are_ordered_and_filtered() -> None:
    store = make_store()
    for space, name in (("b", "x"), ("a", "z"), ("a", "y")):
        store.create("configmaps", {"metadata": {"name": name, "namespace": space}})
    assert [obj["metadata"]["name"] for obj in store.list("configmaps")] == ["y", "z", "x"]
    assert [obj["metadata"]["name"] for obj in store.list("configmaps", "a")] == ["y", "z"]
    assert store.list("configmaps", where=lambda obj: obj["metadata"]["name"] == "q") == []
    assert store.list("pods", "nowhere") == []


def test_changes_come_in_order_with_what_was_before() -> None:
    store = make_store()
    with store.subscribe("configmaps") as changes:
        first = store.create("configmaps", config_map())
        second = store.modify("configmaps", "n", "a", lambda obj: obj["data"].update(k="2"))
        store.delete("configmaps", "n", "a")
        seen = changes.pending()
    assert [(change.type, change.resource_version) for change in seen] == [("ADDED", 2), ("MODIFIED", 3), ("DELETED", 4)]
    assert seen[1].previous is first
    assert seen[2].previous is second
    assert seen[2].object["metadata"]["resourceVersion"] == "4"


def test_a_subscription_can_begin_in_the_past_or_the_future() -> None:
    store = make_store()
    store.create("configmaps", config_map("a"))
    version = store.resource_version
    store.create("configmaps", config_map("b"))
    with store.subscribe("configmaps", since=version) as past, store.subscribe("configmaps", since=version + 2) as future:
        store.create("configmaps", config_map("c"))
        store.create("configmaps", config_map("d"))
        assert [change.object["metadata"]["name"] for change in past.pending()] == ["b", "c", "d"]
        assert [change.object["metadata"]["name"] for change in future.pending()] == ["d"]


def test_a_subscription_to_everything_sees_all_resources_in_order() -> None:
    store = make_store()
    store.create("pods", pod())
    with store.subscribe(since=1) as changes:
        store.create("configmaps", config_map())
        assert [change.resource for change in changes.pending()] == ["pods", "configmaps"]


def test_history_that_is_gone_is_expired() -> None:
    store = make_store(history=2)
    for name in "abcd":
        store.create("configmaps", config_map(name))
    with pytest.raises(errors.Expired, match=r"^too old resource version: 2 \(3\)$"):
        store.subscribe("configmaps", since=2)
    with pytest.raises(errors.Expired):
        store.list_at("configmaps", 2)
    assert len(store.subscribe("configmaps", since=3).pending()) == 2


def test_a_resource_that_began_later_has_no_earlier_versions() -> None:
    store = make_store()
    store.create("configmaps", config_map())
    store.begin("pods")
    with pytest.raises(errors.Expired):
        store.subscribe("pods", since=1)


def test_a_reader_left_too_far_behind_is_expired_and_a_closed_one_ends() -> None:
    async def scenario() -> list[Change]:
        store = make_store(history=2)
        with store.subscribe("configmaps") as slow, store.subscribe("configmaps") as closed:
            for name in "abc":
                store.create("configmaps", config_map(name))
            with pytest.raises(errors.Expired):
                await anext(slow)
            closed.pending()
            closed.close()
            return [change async for change in closed]

    assert asyncio.run(scenario()) == []


def test_a_waiting_reader_wakes_up() -> None:
    async def scenario() -> str:
        store = make_store()
        with store.subscribe("configmaps") as changes:
            waiting = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)
            store.create("configmaps", config_map())
            return (await asyncio.wait_for(waiting, 60)).type

    assert asyncio.run(scenario()) == "ADDED"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=25))
def test_every_earlier_state_can_be_listed_again(writes: list[tuple[str, int]]) -> None:
    store = make_store()
    states = {store.resource_version: store.list("configmaps")}
    for name, value in writes:
        present = store.find("configmaps", "n", name)
        if value == 0 and present:
            store.delete("configmaps", "n", name)
        elif present:
            store.modify("configmaps", "n", name, lambda obj, value=value: obj["data"].update(k=str(value)))
        else:
            store.create("configmaps", config_map(name))
        states[store.resource_version] = store.list("configmaps")
    for version, objects in states.items():
        assert store.list_at("configmaps", version) == objects
