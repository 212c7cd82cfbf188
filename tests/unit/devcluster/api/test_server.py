"""The served API as a client sees it: security, discovery, objects, patches, deletion, watches."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import threading
import time
from typing import Any

import pytest

from metaflow_devcluster.api.bootstrap import bootstrap
from metaflow_devcluster.api.context import Request
from metaflow_devcluster.api.requests import target_of
from metaflow_devcluster.api.writing import create_object
from metaflow_devcluster.cluster import Cluster
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.resources import jobset_resource, served_resources
from metaflow_devcluster.server import make_api
from metaflow_devcluster.store import Store

from .conftest import CONFIG_MAPS, JOBS, JOBSETS, MERGE, PODS, Client, config_map, job, jobset, pod, selecting

Object = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def patch(client: Client, path: str, body: Any, kind: str = MERGE) -> Any:
    return client.call("PATCH", path, body, kind)


# -- security


@pytest.mark.parametrize("prefix", ["", "/s/wrong", "/s/", "/s"])
def test_without_the_secret_there_is_nothing(client: Client, prefix: str) -> None:
    reply = client.call("GET", "/api/v1/namespaces", prefix=prefix)
    assert (reply.code, reply.body) == (404, "")


def test_the_secret_must_be_followed_by_a_path(client: Client) -> None:
    assert client.call("GET", "x/api/v1/namespaces").code == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example:80", ""])
def test_a_foreign_host_header_is_refused(client: Client, host: str) -> None:
    assert client.call("GET", "/version", Host=host).code == 404


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:1", "127.0.0.1"])
def test_local_host_headers_are_served(client: Client, host: str) -> None:
    assert client.call("GET", "/version", Host=host).code == 200


def test_the_secret_is_new_for_every_server_and_long(client: Client) -> None:
    assert len(client.server.secret) >= 32
    assert client.server.url.startswith("http://127.0.0.1:")


def test_a_body_of_more_than_three_megabytes_is_refused(client: Client, name: str) -> None:
    reply = client.call("POST", CONFIG_MAPS, config_map(name, {"a": "x" * (3 * 1024 * 1024)}))
    assert (reply.code, reply.body["reason"]) == (413, "RequestEntityTooLarge")


# -- discovery


def test_health_and_version(client: Client) -> None:
    assert [client.call("GET", path).body for path in ("/healthz", "/readyz", "/livez")] == ["ok"] * 3
    assert client.call("GET", "/version/").body["gitVersion"].startswith("v1.")


def test_resources_are_discovered_in_both_forms(client: Client) -> None:
    plain = {r["name"]: r for r in client.call("GET", "/apis/jobset.x-k8s.io/v1alpha2").body["resources"]}
    assert set(plain) == {"jobsets", "jobsets/status"}
    assert "shortNames" not in plain["jobsets"]
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    reply = client.call("GET", "/apis", Accept=accept)
    assert reply.headers["Content-Type"] == accept
    assert {"batch", "jobset.x-k8s.io"} <= {item["metadata"]["name"] for item in reply.body["items"]}
    assert client.call("GET", "/apis/batch").body["preferredVersion"]["groupVersion"] == "batch/v1"
    assert client.call("GET", "/api").body["versions"] == ["v1"]


def test_openapi_refers_only_to_what_it_contains(client: Client) -> None:
    index = client.call("GET", "/openapi/v3").body["paths"]
    for entry in index.values():
        document = client.call("GET", entry["serverRelativeURL"]).body
        references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
        assert references <= set(document["components"]["schemas"])
    pods = client.call("GET", "/openapi/v3/api/v1").body["paths"]["/api/v1/namespaces/{namespace}/pods"]
    assert "fieldValidation" in {parameter["name"] for parameter in pods["post"]["parameters"]}


def test_openapi_v2_is_json_or_protobuf(client: Client) -> None:
    assert "io.k8s.api.core.v1.Pod" in client.call("GET", "/openapi/v2").body["definitions"]
    reply = client.call("GET", "/openapi/v2", Accept="application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert reply.headers["Content-Type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert "io.k8s.api.core.v1.Pod" in reply.body


def test_a_cluster_may_have_no_jobset_or_another_version_of_it() -> None:
    without = make_api(Store(served_resources()))
    assert without.resources.of_kind("jobset.x-k8s.io/v1alpha2", "JobSet") is None
    newer = make_api(Store(served_resources(jobset=jobset_resource("jobset.x-k8s.io", "v1"))))
    assert newer.schemas.root("jobset.x-k8s.io", "v1", "JobSet") is not None


@pytest.mark.parametrize(
    ("method", "path", "code", "text"),
    [
        ("GET", CONFIG_MAPS + "/none", 404, 'configmaps "none" not found'),
        ("GET", JOBS + "/none", 404, 'jobs.batch "none" not found'),
        ("GET", "/api/v1/namespaces/default/nosuch", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/namespaces/default/pods/a/nosuch", 404, "the server could not find the requested resource"),
        ("GET", "/api/v1/pods/a", 404, "the server could not find the requested resource"),
        ("DELETE", CONFIG_MAPS + "/none", 404, 'configmaps "none" not found'),
        ("PUT", CONFIG_MAPS, 405, "the server does not allow this method on the requested resource"),
        ("DELETE", "/api/v1/namespaces", 405, "the server does not allow this method on the requested resource"),
        ("DELETE", "/api/v1/namespaces/default", 403, "this namespace may not be deleted"),
        ("GET", CONFIG_MAPS + "?resourceVersion=99999999", 504, "Too large resource version: 99999999, current: "),
        ("GET", CONFIG_MAPS + "?limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("GET", CONFIG_MAPS + "?watch=1&timeoutSeconds=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("GET", CONFIG_MAPS + "?resourceVersion=abc", 400, "invalid resource version"),
        ("GET", CONFIG_MAPS + "?limit=1&continue=abc", 400, "invalid continue token"),
        ("GET", CONFIG_MAPS + "?resourceVersionMatch=Exact", 422, "forbidden unless resourceVersion is provided"),
        ("GET", CONFIG_MAPS + "?watch=1&sendInitialEvents=true", 422, "sendInitialEvents requires setting"),
        ("GET", CONFIG_MAPS + "?watch=1&resourceVersion=abc", 500, "invalid resource version"),
        ("POST", CONFIG_MAPS + "?dryRun=x", 422, 'dryRun: Unsupported value: ["x"]: supported values: "All"'),
        ("POST", CONFIG_MAPS + "?fieldValidation=x", 422, 'fieldValidation: Unsupported value: "x"'),
    ],
)
def test_requests_that_are_refused(client: Client, method: str, path: str, code: int, text: str) -> None:
    reply = client.call(method, path, {} if method in ("PUT", "POST") else None)
    assert reply.code == code
    assert reply.body["kind"] == "Status"
    assert text in reply.body["message"]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/apis/nope.io/v1/foos", id="group"),
        pytest.param("/apis/jobset.x-k8s.io/v9/namespaces/default/jobsets", id="version"),
        pytest.param("/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/foos/a", id="resource of a custom group"),
        pytest.param("/apis/jobset.x-k8s.io/v1alpha2/jobsets/a", id="namespaced custom resource without namespace"),
    ],
)
def test_what_is_missing_outside_of_kubernetes_own_groups_is_plain_text(client: Client, path: str) -> None:
    reply = client.call("GET", path)
    assert (reply.code, reply.body) == (404, "404 page not found\n")


def test_watches_of_custom_resources_reach_back_to_their_definition_only(client: Client) -> None:
    assert [kind for kind, _ in client.watch(JOBSETS, "resourceVersion=1")] == ["ERROR"]


def test_what_cannot_be_answered_is_not_acceptable(client: Client) -> None:
    assert client.call("GET", CONFIG_MAPS, Accept="text/plain").code == 406


# -- objects


def test_an_object_lives(client: Client, name: str) -> None:
    made = client.make(CONFIG_MAPS, config_map(name))
    path = f"{CONFIG_MAPS}/{name}"
    assert client.call("GET", path).body == made
    replaced = client.call("PUT", path, {**made, "data": {"b": "2"}}).body
    assert replaced["data"] == {"b": "2"}
    assert int(replaced["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    stale = client.call("PUT", path, {**made, "data": {"c": "3"}})
    assert (stale.code, stale.body["details"]) == (409, {"name": name, "kind": "configmaps"})
    gone = client.call("DELETE", path).body
    assert gone["details"] == {"name": name, "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert client.call("GET", path).code == 404


def test_items_of_built_in_lists_have_no_kind_and_custom_ones_do(client: Client, name: str) -> None:
    client.make(CONFIG_MAPS, config_map(name))
    client.make(JOBSETS, jobset(name))
    built_in, custom = client.call("GET", CONFIG_MAPS).body, client.call("GET", JOBSETS).body
    assert (built_in["kind"], "kind" in built_in["items"][0]) == ("ConfigMapList", False)
    assert (custom["kind"], custom["items"][0]["kind"]) == ("JobSetList", "JobSet")


def test_identity_is_checked(client: Client, name: str) -> None:
    client.make(CONFIG_MAPS, config_map(name))
    path = f"{CONFIG_MAPS}/{name}"
    assert "does not match the name on the URL" in client.call("PUT", path, config_map("other")).body["message"]
    assert client.call("PUT", path, config_map(name, uid="zz")).code == 409
    assert patch(client, path, {"metadata": {"uid": "zz"}}).body["details"]["causes"][0]["field"] == "metadata.uid"
    given = client.call("POST", CONFIG_MAPS, config_map("x", resourceVersion="5"))
    assert (given.code, given.body["message"]) == (500, "resourceVersion should not be set on objects to be created")
    assert client.call("POST", CONFIG_MAPS, config_map("x", namespace="other")).code == 400


def test_a_custom_object_is_replaced_only_with_its_version(client: Client, name: str) -> None:
    client.make(JOBSETS, jobset(name))
    reply = client.call("PUT", f"{JOBSETS}/{name}", jobset(name))
    assert (reply.code, reply.body["reason"]) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in reply.body["message"]


def test_bodies_may_be_yaml_and_compressed(client: Client, name: str) -> None:
    text = f"metadata: {{name: {name}}}\ndata: {{a: 'y'}}\n"
    reply = client.call("POST", CONFIG_MAPS, gzip.compress(text.encode()), "application/yaml", Content_Encoding="gzip")
    assert (reply.code, reply.body["data"]) == (201, {"a": "y"})


def test_answers_may_be_yaml(client: Client, name: str) -> None:
    client.make(CONFIG_MAPS, config_map(name))
    assert "kind: ConfigMap" in client.call("GET", f"{CONFIG_MAPS}/{name}", Accept="application/yaml").body


def test_unknown_fields_warn_or_are_refused(client: Client, name: str) -> None:
    body = {**config_map(name), "bogus": 1}
    reply = client.call("POST", CONFIG_MAPS + "?dryRun=All", body)
    assert (reply.code, reply.headers["Warning"]) == (201, '299 - "unknown field \\"bogus\\""')
    assert client.call("POST", CONFIG_MAPS + "?dryRun=All&fieldValidation=Ignore", body).headers["Warning"] is None
    strict = client.call("POST", CONFIG_MAPS + "?fieldValidation=Strict", body)
    assert 'strict decoding error: unknown field "bogus"' in strict.body["message"]
    twice = client.call("POST", CONFIG_MAPS + "?fieldValidation=Strict", '{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}')
    assert 'strict decoding error: duplicate field "data.a"' in twice.body["message"]


def test_a_dry_run_changes_nothing(client: Client, name: str) -> None:
    made = client.call("POST", CONFIG_MAPS + "?dryRun=All", config_map(name))
    assert (made.code, "resourceVersion" in made.body["metadata"]) == (201, False)
    path = f"{CONFIG_MAPS}/{name}"
    assert client.call("GET", path).code == 404
    client.make(CONFIG_MAPS, config_map(name))
    assert patch(client, path + "?dryRun=All", {"data": {"a": "2"}}).body["data"] == {"a": "2"}
    assert client.call("DELETE", path + "?dryRun=All").code == 200
    assert client.call("GET", path).body["data"] == {"a": "1"}
    assert client.call("POST", CONFIG_MAPS + "?dryRun=All", config_map(name)).code == 409


def test_pages_of_a_list_show_one_moment(client: Client, name: str) -> None:
    labels = {"page": name}
    for number in range(3):
        client.make(CONFIG_MAPS, config_map(f"{name}-{number}", labels=labels))
    query = f"{CONFIG_MAPS}?labelSelector=page%3D{name}&limit=2"
    first = client.call("GET", query).body
    client.make(CONFIG_MAPS, config_map(f"{name}-9", labels=labels))
    second = client.call("GET", f"{query}&continue={first['metadata']['continue']}").body
    assert [len(page["items"]) for page in (first, second)] == [2, 1]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}
    assert client.call("GET", CONFIG_MAPS + "?limit=1").body["metadata"]["remainingItemCount"] > 0


def test_a_list_can_be_of_an_exact_moment(client: Client, name: str) -> None:
    version = client.make(CONFIG_MAPS, config_map(name, labels={"at": name}))["metadata"]["resourceVersion"]
    client.make(CONFIG_MAPS, config_map(f"{name}-b", labels={"at": name}))
    query = f"?labelSelector=at%3D{name}&resourceVersion={version}&resourceVersionMatch=Exact"
    found = client.call("GET", CONFIG_MAPS + query).body
    assert (len(found["items"]), found["metadata"]["resourceVersion"]) == (1, version)


def test_lists_span_namespaces_and_take_selectors(client: Client, name: str) -> None:
    client.make("/api/v1/namespaces", {"metadata": {"name": name}})
    client.make(f"/api/v1/namespaces/{name}/configmaps", config_map("a", labels={"t": name}))
    client.make(CONFIG_MAPS, config_map(name, labels={"t": name}))
    found = client.call("GET", f"/api/v1/configmaps?labelSelector={selecting(f't in ({name})')}").body["items"]
    assert sorted(item["metadata"]["namespace"] for item in found) == sorted(("default", name))
    assert client.call("GET", f"{CONFIG_MAPS}?fieldSelector=metadata.name%3D{name}").body["items"][0]["data"] == {"a": "1"}


# -- patches and status


def test_patches_of_every_kind(client: Client, name: str) -> None:
    client.make(PODS, pod(name))
    path = f"{PODS}/{name}"
    strategic = {"spec": {"containers": [{"name": "main", "image": "y"}]}}
    container = patch(client, path, strategic, "application/strategic-merge-patch+json").body["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("y", ["true"])
    operations = [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]
    assert patch(client, path, operations, "application/json-patch+json").body["metadata"]["labels"] == {"a": "b"}
    assert patch(client, path, {"metadata": {"labels": {"a": None, "c": "d"}}}).body["metadata"]["labels"] == {"c": "d"}
    assert patch(client, path, {}, "application/json").code == 415


def test_custom_objects_refuse_strategic_patches(client: Client, name: str) -> None:
    client.make(JOBSETS, jobset(name))
    reply = patch(client, f"{JOBSETS}/{name}", {}, "application/strategic-merge-patch+json")
    assert reply.code == 415
    assert reply.body["message"].endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_apply_creates_and_needs_a_manager(client: Client, name: str) -> None:
    kind = "application/apply-patch+yaml"
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", **config_map(name)}
    path = f"{CONFIG_MAPS}/{name}"
    assert (
        patch(client, path, wanted, kind).body["message"].endswith("fieldManager: Required value: is required for apply patch")
    )
    assert patch(client, path + "?fieldManager=x", wanted, kind).code == 201
    again = patch(client, path + "?fieldManager=x", {**wanted, "data": {"b": "2"}}, kind)
    assert (again.code, again.body["data"]) == (200, {"b": "2"})
    assert patch(client, path + "?fieldManager=y", {**wanted, "data": {"b": "3"}}, kind).code == 409


def test_a_patch_that_changes_nothing_keeps_the_version(client: Client, name: str) -> None:
    made = client.make(CONFIG_MAPS, config_map(name))
    assert patch(client, f"{CONFIG_MAPS}/{name}", {"data": {"a": "1"}}).body == made


def test_the_status_is_written_apart(client: Client, name: str) -> None:
    client.make(PODS, pod(name))
    path = f"{PODS}/{name}"
    patch(
        client, path + "/status", {"status": {"message": "zz"}, "metadata": {"labels": {"x": "y"}}, "spec": {"nodeName": "n"}}
    )
    patch(client, path, {"status": {"message": "yy"}})
    found = client.call("GET", path + "/status").body
    assert (found["status"]["message"], found["metadata"].get("labels"), found["spec"].get("nodeName")) == ("zz", None, None)
    client.make(JOBSETS, jobset(name))
    written = patch(client, f"{JOBSETS}/{name}/status", {"status": {"restarts": 7}}).body
    assert (written["status"]["restarts"], written["metadata"]["generation"]) == (7, 1)


# -- subresources of pods


def test_binding_gives_a_node_once(client: Client, name: str) -> None:
    client.make(PODS, pod(name))
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
    client.make(f"{PODS}/{name}/binding", body)
    found = client.call("GET", f"{PODS}/{name}").body
    assert found["spec"]["nodeName"] == "n"
    assert [(c["type"], c["status"]) for c in found["status"]["conditions"]] == [("PodScheduled", "True")]
    again = client.call("POST", f"{PODS}/{name}/binding", body)
    assert (again.code, 'is already assigned to node "n"' in again.body["message"]) == (409, True)


def test_eviction_marks_and_deletes(client: Client, name: str) -> None:
    client.make(PODS, {**pod(name), "metadata": {"name": name, "finalizers": ["a.b/c"]}})
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    assert client.call("POST", f"{PODS}/{name}/eviction?dryRun=All", body).code == 201
    assert "deletionTimestamp" not in client.call("GET", f"{PODS}/{name}").body["metadata"]
    client.make(f"{PODS}/{name}/eviction", body)
    left = client.call("GET", f"{PODS}/{name}").body
    assert left["metadata"]["deletionTimestamp"]
    condition = left["status"]["conditions"][0]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "EvictionByEvictionAPI")


# -- deletion


def test_deleting_a_job_without_a_policy_warns_and_orphans(client: Client, name: str) -> None:
    client.make(JOBS, job(name))
    reply = client.call("DELETE", f"{JOBS}/{name}")
    assert reply.headers["Warning"].startswith('299 - "child pods are preserved by default when jobs are deleted;')
    assert reply.body["metadata"]["finalizers"] == ["orphan"]
    again = client.call("DELETE", f"{JOBS}/{name}", {"propagationPolicy": "Background"})
    assert (again.body["kind"], again.headers["Warning"]) == ("Status", None)


def test_preconditions_and_bad_policies(client: Client, name: str) -> None:
    client.make(CONFIG_MAPS, config_map(name))
    path = f"{CONFIG_MAPS}/{name}"
    assert client.call("DELETE", path, {"preconditions": {"uid": "zz"}}).code == 409
    assert client.call("DELETE", path, {"propagationPolicy": "Odd"}).code == 422
    assert client.call("DELETE", path + "?propagationPolicy=Foreground").body["metadata"]["finalizers"] == [
        "foregroundDeletion"
    ]


def test_a_collection_is_deleted_by_selector(client: Client, name: str) -> None:
    for number in "12":
        client.make(CONFIG_MAPS, config_map(f"{name}-{number}", labels={"dc": name}))
    client.make(CONFIG_MAPS, config_map(name))
    reply = client.call("DELETE", f"{CONFIG_MAPS}?labelSelector=dc%3D{name}").body
    assert (reply["kind"], len(reply["items"])) == ("ConfigMapList", 2)
    assert client.call("GET", f"{CONFIG_MAPS}/{name}").code == 200


def test_a_namespace_ends_when_it_is_finalized(client: Client, name: str) -> None:
    client.make("/api/v1/namespaces", {"metadata": {"name": name}})
    path = f"/api/v1/namespaces/{name}"
    assert client.call("DELETE", path).body["status"] == {"phase": "Terminating"}
    client.call("PUT", f"{path}/finalize", {"metadata": {"name": name}, "spec": {"finalizers": []}})
    assert client.call("GET", path).code == 404


# -- access


def test_reviews_and_impersonation_agree(client: Client, name: str) -> None:
    attributes = {"spec": {"resourceAttributes": {"verb": "create", "resource": "jobs", "group": "batch"}}}
    reviews = "/apis/authorization.k8s.io/v1/"
    assert client.make(reviews + "selfsubjectaccessreviews", attributes)["status"]["allowed"] is True
    user = "system:serviceaccount:default:default"
    of_other = {"spec": {**attributes["spec"], "user": user}}
    assert client.make(reviews + "subjectaccessreviews", of_other)["status"]["allowed"] is False
    refused = client.call("POST", JOBS, job(name), Impersonate_User=user)
    text = (
        f'jobs.batch is forbidden: User "{user}" cannot create resource "jobs" in API group "batch" in the namespace "default"'
    )
    assert (refused.code, refused.body["message"]) == (403, text)
    assert client.call("POST", reviews + "selfsubjectaccessreviews", {"spec": {}}).code == 422


def test_tokens_have_three_parts_and_live_ten_minutes_at_least(client: Client) -> None:
    path = "/api/v1/namespaces/default/serviceaccounts/default/token"
    made = client.make(path, {"spec": {"expirationSeconds": 600, "audiences": None}})
    assert made["status"]["token"].count(".") == 2
    assert client.call("POST", path, {"spec": {"expirationSeconds": 60}}).code == 422


# -- watches


def test_a_watch_replays_what_is_there_or_what_came_after(client: Client, name: str) -> None:
    labels = {"w": name}
    version = client.make(CONFIG_MAPS, config_map(name, labels=labels))["metadata"]["resourceVersion"]
    patch(client, f"{CONFIG_MAPS}/{name}", {"data": {"k": "v"}})
    client.call("DELETE", f"{CONFIG_MAPS}/{name}")
    selected = f"labelSelector=w%3D{name}"
    events = client.watch(CONFIG_MAPS, f"{selected}&resourceVersion={version}")
    assert [kind for kind, _ in events] == ["MODIFIED", "DELETED"]
    assert int(events[1][1]["metadata"]["resourceVersion"]) > int(events[0][1]["metadata"]["resourceVersion"])
    assert client.watch(CONFIG_MAPS, selected) == []


def test_leaving_a_selector_is_deleted_and_entering_added(client: Client, name: str) -> None:
    version = client.make(CONFIG_MAPS, config_map(name))["metadata"]["resourceVersion"]
    patch(client, f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": {"w": name}}})
    patch(client, f"{CONFIG_MAPS}/{name}", {"metadata": {"labels": {"w": None}}})
    events = client.watch(CONFIG_MAPS, f"labelSelector=w%3D{name}&resourceVersion={version}")
    assert [kind for kind, _ in events] == ["ADDED", "DELETED"]
    assert events[1][1]["metadata"]["labels"] == {"w": name}


def test_initial_events_end_with_a_bookmark_and_live_ones_follow(client: Client, name: str) -> None:
    labels = {"w": name}
    client.make(CONFIG_MAPS, config_map(name, labels=labels))
    later = threading.Timer(0.2, lambda: client.make(CONFIG_MAPS, config_map(f"{name}-b", labels=labels)))
    later.start()
    query = f"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1&labelSelector=w%3D{name}"
    events = client.watch(CONFIG_MAPS, query)
    later.join()
    assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK", "ADDED"]
    assert events[1][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_watch_ends_in_time_and_tells_of_future_versions_nothing(client: Client) -> None:
    began = time.monotonic()
    assert client.watch(CONFIG_MAPS, "resourceVersion=99999999") == []
    assert time.monotonic() - began > 0.9


def test_tables_are_watched_too(client: Client, name: str) -> None:
    for number in "12":
        client.make(CONFIG_MAPS, config_map(f"{name}-{number}", labels={"w": name}))
    reply = client.call("GET", f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&labelSelector=w%3D{name}", Accept=TABLE)
    events = [json.loads(line) for line in reply.body.splitlines()]
    assert [bool(event["object"].get("columnDefinitions")) for event in events] == [True, False]


def test_metadata_alone_can_be_asked_for(client: Client, name: str) -> None:
    client.make(CONFIG_MAPS, config_map(name))
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    found = client.call("GET", CONFIG_MAPS, Accept=accept).body
    assert (found["kind"], set(found["items"][0])) == ("PartialObjectMetadataList", {"kind", "apiVersion", "metadata"})


# -- custom resource definitions


def definition(group: str) -> Object:
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 3, "maximum": 5}}}},
    }
    columns = [{"name": "N", "type": "integer", "jsonPath": ".spec.n"}]
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo"}
    versions = [{**version, "subresources": {"status": {}}, "additionalPrinterColumns": columns}]
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"foos.{group}"}, "spec": spec}


def test_a_definition_is_served_validated_and_withdrawn(client: Client, name: str) -> None:
    group = f"{name}.test"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    client.make(definitions, definition(group))
    path = f"/apis/{group}/v1/namespaces/default/foos"
    kind = {"apiVersion": f"{group}/v1", "kind": "Foo"}
    made = client.make(path, {**kind, "metadata": {"name": "a"}, "spec": {"unknown": 1}, "status": {"x": 1}})
    assert (made["spec"], made["metadata"]["generation"], "status" in made) == ({"n": 3}, 1, False)
    refused = client.call("POST", path, {**kind, "metadata": {"name": "b"}, "spec": {"n": 9}})
    assert "spec.n in body should be less than or equal to 5" in refused.body["message"]
    assert client.call("GET", path, Accept=TABLE).body["rows"][0]["cells"] == ["a", 3]
    assert [kind for kind, _ in client.watch(path, "resourceVersion=1")] == ["ERROR"]
    client.call("DELETE", f"{definitions}/foos.{group}")
    assert client.call("GET", path).code == 404


# -- robustness

JUNK: tuple[Any, ...] = (None, 1, "x", [], {}, [1], [None], {"a": {}}, True, 1.5)
OBJECTS = {
    CONFIG_MAPS: config_map("junk", labels={"a": "b"}, ownerReferences=[{"apiVersion": "v1", "kind": "x"}]),
    PODS: pod("junk", volumes=[{"name": "v", "emptyDir": {}}], tolerations=[{"key": "a"}]),
    JOBS: job("junk", completionMode="Indexed", completions=1, podFailurePolicy={"rules": [{"action": "FailJob"}]}),
    JOBSETS: jobset("junk", failurePolicy={"rules": [{"action": "FailJobSet"}]}, coordinator={"replicatedJob": "control"}),
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [path, *(place for key in keys for place in places(value[key], (*path, key)))]


def with_junk(value: Any, path: tuple[Any, ...], junk: Any) -> Any:
    if not path:
        return junk
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_junk(value[path[0]], path[1:], junk)
    return copy


@pytest.mark.parametrize("path", list(OBJECTS), ids=["configmap", "pod", "job", "jobset"])
def test_no_body_however_wrong_breaks_the_server(path: str) -> None:
    """Every field of an object is replaced by everything it should not be: refused or accepted, never an error."""
    api = make_api(Store(served_resources(jobset=jobset_resource())))
    bootstrap(Cluster(api.store, api.admission), port=1)
    target = target_of(api.resources, path)
    for place in places(OBJECTS[path]):
        for junk in JUNK:
            body = json.dumps(with_junk(OBJECTS[path], place, junk)).encode()
            with contextlib.suppress(ApiError):
                create_object(api, target, Request(method="POST", path=path, body=body, query={"dryRun": "All"}))
