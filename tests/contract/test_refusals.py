"""What a server refuses, and as which of our errors it comes: decisions and texts depend on both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cluster.failures import is_unknown_kind
from metaflow_extensions.kubernetes_ext.cluster.protocol import JOBS, PODS, ClusterClient, Resource
from metaflow_extensions.kubernetes_ext.errors import Forbidden, NotFound, Rejected
from tests.contract.objects import job, jobset
from tests.contract.places import JOBSETS, NAMESPACES, ON_REAL, ON_SERVERS, Place
from tests.contract.waiting import until

Change = Callable[[dict[str, Any]], None]


def pod_of(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["spec"]["template"]["spec"]
    return found


def _name(name: str) -> Change:
    return lambda body: body["metadata"].update(name=name)


def _spec(**fields: Any) -> Change:
    return lambda body: body["spec"].update(fields)


def _container(**fields: Any) -> Change:
    return lambda body: pod_of(body)["containers"][0].update(fields)


@ON_SERVERS
@pytest.mark.parametrize(
    ("change", "status", "reason", "text"),
    [
        pytest.param(
            _name("Not_A_Name"), 422, "Invalid", "a lowercase RFC 1123 subdomain must consist of", id="name with capitals"
        ),
        pytest.param(_spec(parallelism=-1), 422, "Invalid", "spec.parallelism: Invalid value: -1", id="negative parallelism"),
        pytest.param(_container(command="sh"), 400, "BadRequest", "cannot unmarshal string into Go struct", id="wrong type"),
        pytest.param(
            _container(resources={"requests": {"memory": "much"}}),
            400,
            "BadRequest",
            "quantities must match",
            id="bad quantity",
        ),
        pytest.param(
            _container(resources={"requests": {"memory": "2Mi"}, "limits": {"memory": "1Mi"}}),
            422,
            "Invalid",
            "must be less than or equal to memory limit",
            id="request above limit",
        ),
        pytest.param(_container(image=""), 422, "Invalid", "image: Required value", id="no image"),
        pytest.param(lambda body: pod_of(body).pop("restartPolicy"), 422, "Invalid", "restartPolicy", id="restart policy"),
        pytest.param(
            _spec(completionMode="Indexed", parallelism=2), 422, "Invalid", "completions: Required value", id="no completions"
        ),
        pytest.param(lambda body: body.update(kind="Gang"), 400, "BadRequest", "cannot be handled as a Job", id="other kind"),
    ],
)
def test_jobs_that_are_refused(place: Place, change: Change, status: int, reason: str, text: str) -> None:
    body = job("one")
    change(body)
    for dry_run in (True, False):
        with pytest.raises(Rejected, match=text) as caught:
            place.client.create(JOBS, place.namespace, body, dry_run=dry_run)
        assert (caught.value.status, caught.value.reason) == (status, reason)


@ON_SERVERS
@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        pytest.param(
            jobset("a" * 60),
            403,
            'admission webhook "vjobset.kb.io" denied the request.*JobSet name is too long',
            id="webhook: name too long",
        ),
        pytest.param(
            jobset("one", successPolicy={"operator": "All", "targetReplicatedJobs": ["nobody"]}),
            403,
            "admission webhook .*nobody",
            id="webhook: unknown replicated job",
        ),
        pytest.param(jobset("one", failurePolicy={"maxRestarts": "many"}), 400, "json: cannot unmarshal string", id="type"),
        pytest.param(jobset("one", startupPolicy={"startupPolicyOrder": "Chaos"}), 422, "Unsupported value", id="schema"),
        pytest.param(jobset("one", groups=("same", "same")), 422, "Duplicate value", id="two groups of a name"),
    ],
)
def test_jobsets_that_are_refused(place: Place, body: dict[str, Any], status: int, text: str) -> None:
    with pytest.raises(Rejected, match=text) as caught:
        place.create(JOBSETS, body)
    assert caught.value.status == status


@ON_SERVERS
@pytest.mark.parametrize(
    ("resource", "body"), [pytest.param(JOBS, job("one"), id="job"), pytest.param(JOBSETS, jobset("one"), id="jobset")]
)
def test_unknown_fields_are_dropped_or_refused_with_their_path_when_asked_strictly(
    place: Place, resource: Resource, body: dict[str, Any]
) -> None:
    wrong = {**body, "spec": {**body["spec"], "bogus": 1}}
    with pytest.raises(Rejected, match=r'strict decoding error: unknown field "spec\.bogus"') as caught:
        place.client.create(resource, place.namespace, wrong, strict=True, dry_run=True)
    assert caught.value.status == 400
    assert "bogus" not in place.create(resource, wrong)["spec"]


@ON_SERVERS
@pytest.mark.parametrize(
    ("resource", "body", "patch", "status", "text"),
    [
        pytest.param(
            JOBS, job("one"), {"spec": {"completions": 5}}, 422, "spec.completions.*field is immutable", id="job: completions"
        ),
        pytest.param(
            JOBSETS,
            jobset("one"),
            {"spec": {"replicatedJobs": []}},
            403,
            "replicatedJobs.*field is immutable",
            id="jobset: jobs",
        ),
        pytest.param(
            JOBSETS, jobset("one"), {"spec": {"network": {"subdomain": "x"}}}, 422, "Value is immutable", id="jobset: network"
        ),
    ],
)
def test_changes_that_are_refused(
    place: Place, resource: Resource, body: dict[str, Any], patch: dict[str, Any], status: int, text: str
) -> None:
    place.create(resource, body)
    with pytest.raises(Rejected, match=f"(?s){text}") as caught:
        place.client.patch(resource, place.namespace, "one", patch)
    assert caught.value.status == status


@ON_SERVERS
@pytest.mark.parametrize(
    "resource",
    [
        pytest.param(Resource("jobset.x-k8s.io", "v1alpha2", "gangs", "Gang"), id="kind"),
        pytest.param(Resource("jobset.x-k8s.io", "v9", "jobsets", "JobSet"), id="version"),
        pytest.param(Resource("contract.example.com", "v1", "gangs", "Gang"), id="group"),
    ],
)
@pytest.mark.parametrize("verb", ["get", "list", "create", "delete"])
def test_an_unknown_kind_is_told_apart_from_a_missing_object(place: Place, resource: Resource, verb: str) -> None:
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "one"}}
    arguments = {"get": ("one",), "list": (), "create": (body,), "delete": ("one",)}[verb]
    with pytest.raises(NotFound, match="is not installed on this cluster") as caught:
        getattr(place.admin, verb)(resource, place.namespace, *arguments)
    assert is_unknown_kind(caught.value)


@ON_SERVERS
def test_a_missing_object_is_no_unknown_kind(place: Place) -> None:
    with pytest.raises(NotFound, match=r'jobsets\.jobset\.x-k8s\.io "one" not found') as caught:
        place.client.get(JOBSETS, place.namespace, "one")
    assert not is_unknown_kind(caught.value)


@ON_SERVERS
def test_a_quota_that_is_used_up_refuses_and_is_no_missing_permission(place: Place) -> None:
    place.limit({"count/jobs.batch": "1"})
    place.create(JOBS, job("one"))
    with pytest.raises(
        Rejected, match=r"exceeded quota: limit, requested: count/jobs.batch=1, used: .*=1, limited: .*=1"
    ) as caught:
        place.create(JOBS, job("two"))
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
    place.client.delete(JOBS, place.namespace, "one")
    until(lambda: created(place.client, place.namespace), "the quota is free again")


def created(client: ClusterClient, namespace: str) -> bool:
    try:
        client.create(JOBS, namespace, job("two"))
    except Rejected:
        return False
    return True


@ON_SERVERS
def test_a_namespace_that_is_not_there_is_told_by_name(place: Place) -> None:
    with pytest.raises(NotFound, match="There is no namespace contract-nowhere") as caught:
        place.admin.create(JOBS, "contract-nowhere", job("one"))
    assert not is_unknown_kind(caught.value)
    assert place.admin.list(JOBS, "contract-nowhere")["items"] == []


@ON_SERVERS
def test_a_namespace_that_is_being_deleted_takes_nothing_new(place: Place) -> None:
    place.create(JOBS, job("one", finalizers=["contract.example.com/hold"]))
    place.admin.delete(NAMESPACES, "", place.namespace)
    with pytest.raises(Rejected, match="because it is being terminated") as caught:
        place.admin.create(JOBS, place.namespace, job("two"))
    assert caught.value.status == 403
    place.admin.patch(JOBS, place.namespace, "one", {"metadata": {"finalizers": None}})


@ON_REAL
@pytest.mark.parametrize(
    ("call", "verb", "resource"),
    [
        pytest.param(
            lambda place: place.client.create(PODS, place.namespace, {"metadata": {"name": "x"}}), "create", "pods", id="pods"
        ),
        pytest.param(lambda place: place.client.delete(PODS, place.namespace, "x"), "delete", "pods", id="delete"),
        pytest.param(lambda place: place.client.list(JOBS, "default"), "list", "jobs", id="another namespace"),
        pytest.param(
            lambda place: place.client.get(Resource("", "v1", "secrets", "Secret"), place.namespace, "x"),
            "get",
            "secrets",
            id="secrets",
        ),
    ],
)
def test_a_missing_permission_is_named(place: Place, call: Callable[[Place], object], verb: str, resource: str) -> None:
    with pytest.raises(Forbidden, match=f'needs the verb "{verb}" on "{resource}"') as caught:
        call(place)
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
