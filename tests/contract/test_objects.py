"""Creating, reading, changing and deleting through our client: the same on every cluster."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster import client as client_module
from metaflow_extensions.kubernetes_ext.cluster.client import KubernetesClient
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS, Resource
from metaflow_extensions.kubernetes_ext.errors import Conflict, NotFound
from tests.contract.objects import job, jobset
from tests.contract.places import JOBSETS, ON_ALL, ON_SERVERS, Place
from tests.contract.waiting import until

HOLD = "contract.example.com/hold"


def exists(place: Place, name: str, resource: Resource = JOBS) -> bool:
    try:
        place.client.get(resource, place.namespace, name)
    except NotFound:
        return False
    return True


def names(place: Place, **selectors: str) -> list[str]:
    return sorted(item["metadata"]["name"] for item in place.client.list(JOBS, place.namespace, **selectors)["items"])


@ON_ALL
def test_a_created_object_has_an_identity_and_is_read_back_as_answered(place: Place) -> None:
    created = place.create(JOBS, job("one", {"a": "1"}))
    assert all(created["metadata"][key] for key in ("uid", "resourceVersion", "creationTimestamp"))
    assert place.client.get(JOBS, place.namespace, "one") == created
    assert place.client.list(JOBS, place.namespace)["items"][0]["metadata"] == created["metadata"]


@ON_ALL
def test_a_name_that_is_taken_is_a_conflict_also_in_a_dry_run(place: Place) -> None:
    place.create(JOBS, job("one"))
    for dry_run in (False, True):
        with pytest.raises(Conflict, match='"one" already exists') as caught:
            place.client.create(JOBS, place.namespace, job("one"), dry_run=dry_run)
        assert (caught.value.status, caught.value.reason) == (409, "AlreadyExists")


@ON_SERVERS
def test_a_name_whose_object_is_being_deleted_is_a_conflict_until_it_is_gone(place: Place) -> None:
    place.create(JOBS, job("one", finalizers=[HOLD]))
    place.client.delete(JOBS, place.namespace, "one")
    assert place.client.get(JOBS, place.namespace, "one")["metadata"]["deletionTimestamp"]
    with pytest.raises(Conflict, match="object is being deleted") as caught:
        place.create(JOBS, job("one"))
    assert caught.value.reason == "AlreadyExists"
    place.client.patch(JOBS, place.namespace, "one", {"metadata": {"finalizers": None}})
    until(lambda: not exists(place, "one"), "the object is gone")
    assert "deletionTimestamp" not in place.create(JOBS, job("one"))["metadata"]


@ON_ALL
def test_a_merge_patch_adds_replaces_and_removes(place: Place) -> None:
    before = place.create(JOBS, job("one", {"a": "1", "b": "1"}))
    after = place.client.patch(JOBS, place.namespace, "one", {"metadata": {"labels": {"a": "2", "b": None, "c": "3"}}})
    labels = {key: value for key, value in after["metadata"]["labels"].items() if "/" not in key}
    assert labels == {"a": "2", "c": "3"}
    assert after["spec"] == before["spec"]
    assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
    assert place.client.get(JOBS, place.namespace, "one") == after


@ON_SERVERS
@pytest.mark.parametrize(
    ("resource", "body"), [pytest.param(JOBS, job("one"), id="job"), pytest.param(JOBSETS, jobset("one"), id="jobset")]
)
def test_a_patch_of_a_version_that_is_no_longer_the_current_one_is_a_conflict(
    place: Place, resource: Resource, body: dict[str, Any]
) -> None:
    stale = place.create(resource, body)["metadata"]["resourceVersion"]
    place.client.patch(resource, place.namespace, "one", {"metadata": {"labels": {"a": "1"}}})
    with pytest.raises(Conflict, match="the object has been modified") as caught:
        place.client.patch(resource, place.namespace, "one", {"metadata": {"resourceVersion": stale, "labels": {"a": "2"}}})
    assert caught.value.reason == "Conflict"


@ON_SERVERS
def test_a_patch_that_changes_nothing_makes_no_new_version(place: Place) -> None:
    before = place.create(JOBS, job("one", {"a": "1"}))
    assert place.client.patch(JOBS, place.namespace, "one", {"metadata": {"labels": {"a": "1"}}}) == before


@ON_ALL
def test_what_is_missing_can_not_be_read_or_patched_but_deleted(place: Place) -> None:
    with pytest.raises(NotFound, match="not found") as caught:
        place.client.get(JOBS, place.namespace, "one")
    assert caught.value.reason == "NotFound"
    with pytest.raises(NotFound):
        place.client.patch(JOBS, place.namespace, "one", {"metadata": {"labels": {"a": "1"}}})
    place.client.delete(JOBS, place.namespace, "one")


@ON_ALL
def test_a_deletion_with_a_uid_deletes_that_very_object_only(place: Place) -> None:
    uid = place.create(JOBS, job("one"))["metadata"]["uid"]
    place.client.delete(JOBS, place.namespace, "one", uid="00000000-0000-0000-0000-000000000000")
    assert exists(place, "one")
    place.client.delete(JOBS, place.namespace, "one", uid=uid)
    until(lambda: not exists(place, "one"), "the object is gone")


@ON_SERVERS
@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deletion_takes_the_dependents_along(place: Place, propagation: str) -> None:
    child_of(place, place.create(JOBS, job("parent")))
    place.client.delete(JOBS, place.namespace, "parent", propagation=propagation)
    until(lambda: not names(place), "both are gone")


@ON_SERVERS
def test_a_deletion_that_orphans_leaves_the_dependents_and_takes_them_off_the_owner(place: Place) -> None:
    child_of(place, place.create(JOBS, job("parent")))
    place.client.delete(JOBS, place.namespace, "parent", propagation="Orphan")
    until(lambda: names(place) == ["child"], "only the child is left")
    assert not place.client.get(JOBS, place.namespace, "child")["metadata"].get("ownerReferences")


@ON_SERVERS
def test_with_foreground_deletion_the_owner_waits_for_its_dependents(place: Place) -> None:
    child_of(place, place.create(JOBS, job("parent")), finalizers=[HOLD])
    place.client.delete(JOBS, place.namespace, "parent", propagation="Foreground")
    until(lambda: "deletionTimestamp" in place.client.get(JOBS, place.namespace, "child")["metadata"], "the child goes")
    parent = place.client.get(JOBS, place.namespace, "parent")["metadata"]
    assert (parent["finalizers"], bool(parent["deletionTimestamp"])) == (["foregroundDeletion"], True)
    place.client.patch(JOBS, place.namespace, "child", {"metadata": {"finalizers": None}})
    until(lambda: not names(place), "both are gone")


def child_of(place: Place, parent: dict[str, Any], **metadata: Any) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": parent["metadata"]["name"], "uid": parent["metadata"]["uid"]}
    place.create(JOBS, job("child", ownerReferences=[{**owner, "blockOwnerDeletion": True}], **metadata))


@ON_ALL
def test_a_dry_run_answers_as_if_and_leaves_nothing(place: Place) -> None:
    answered = place.client.create(JOBS, place.namespace, job("one"), dry_run=True)
    assert answered["metadata"]["name"] == "one"
    assert names(place) == []


EQUALITY = [
    pytest.param({"label_selector": "a=1"}, ["x", "y"], id="label equals"),
    pytest.param({"label_selector": "a=1,b=2"}, ["y"], id="both labels"),
    pytest.param({"field_selector": "metadata.name=z"}, ["z"], id="name"),
    pytest.param({"label_selector": "a=1", "field_selector": "metadata.name=y"}, ["y"], id="label and name"),
    pytest.param({"label_selector": "a=9"}, [], id="nobody has it"),
]
SETS = [
    pytest.param({"label_selector": "a!=1"}, ["z"], id="label differs, or is missing"),
    pytest.param({"label_selector": "a"}, ["x", "y"], id="label exists"),
    pytest.param({"label_selector": "!a"}, ["z"], id="label is missing"),
    pytest.param({"label_selector": "b in (2,3)"}, ["y", "z"], id="one of"),
    pytest.param({"label_selector": "b notin (2,3)"}, ["x"], id="none of"),
    pytest.param({"field_selector": "metadata.name!=z"}, ["x", "y"], id="other names"),
    pytest.param({"field_selector": "status.successful=0"}, ["x", "y", "z"], id="a field of Jobs"),
]


def three(place: Place) -> None:
    for name, labels in (("x", {"a": "1"}), ("y", {"a": "1", "b": "2"}), ("z", {"b": "3"})):
        place.create(JOBS, job(name, labels))


@ON_ALL
@pytest.mark.parametrize(("selectors", "expected"), EQUALITY)
def test_selectors_of_equality(place: Place, selectors: dict[str, str], expected: list[str]) -> None:
    three(place)
    assert names(place, **selectors) == expected


@ON_SERVERS
@pytest.mark.parametrize(("selectors", "expected"), SETS)
def test_selectors_of_every_form(place: Place, selectors: dict[str, str], expected: list[str]) -> None:
    three(place)
    assert names(place, **selectors) == expected


@ON_SERVERS
def test_a_list_that_comes_in_pages_is_whole(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_PAGE", 2)
    for number in range(5):
        place.create(JOBS, job(f"job-{number}"))
    listed = place.client.list(JOBS, place.namespace)
    assert [item["metadata"]["name"] for item in listed["items"]] == [f"job-{number}" for number in range(5)]
    assert int(listed["metadata"]["resourceVersion"]) > 0
    assert not listed["metadata"].get("continue")


@ON_ALL
@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        pytest.param(JOBS, True, id="jobs"),
        pytest.param(PODS, True, id="pods"),
        pytest.param(JOBSETS, True, id="jobsets"),
        pytest.param(Resource("batch", "v1", "gangs", "Gang"), False, id="unknown kind"),
        pytest.param(Resource("jobset.x-k8s.io", "v9", "jobsets", "JobSet"), False, id="unknown version"),
        pytest.param(Resource("contract.example.com", "v1", "gangs", "Gang"), False, id="unknown group"),
    ],
)
def test_discovery_tells_what_the_cluster_serves(place: Place, resource: Resource, expected: bool) -> None:
    assert place.client.serves(resource) is expected


@ON_SERVERS
def test_discovery_tells_the_versions_of_a_group(place: Place) -> None:
    assert isinstance(place.client, KubernetesClient)
    assert place.client.served_versions("jobset.x-k8s.io") == ("v1alpha2",)
    assert place.client.served_versions("contract.example.com") == ()
