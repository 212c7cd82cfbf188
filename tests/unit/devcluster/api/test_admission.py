"""What admission makes of Jobs, pods and JobSets, and what it refuses with which text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from metaflow_devcluster.api.admission import Admission
from metaflow_devcluster.api.bootstrap import bootstrap
from metaflow_devcluster.cluster import Cluster
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.resources import jobset_resource, served_resources
from metaflow_devcluster.store import Store, clone

from .conftest import config_map, job, jobset, pod

Object = dict[str, Any]
JOBS, JOBSETS = "jobs.batch", "jobsets.jobset.x-k8s.io"


@pytest.fixture
def cluster() -> Cluster:
    store = Store(served_resources(jobset=jobset_resource()))
    made = Cluster(store, Admission(store))
    bootstrap(made, port=1)
    return made


def create(cluster: Cluster, resource: str, obj: Object) -> Object:
    return cluster.create(resource, {**obj, "metadata": {"namespace": "default", **obj["metadata"]}})


def refusal(cluster: Cluster, resource: str, obj: Object) -> ApiError:
    with pytest.raises(ApiError) as refused:
        create(cluster, resource, obj)
    return refused.value


def worker_pod(obj: Object) -> Object:
    found: Object = obj["spec"]["replicatedJobs"][1]["template"]["spec"]["template"]["spec"]
    return found


# -- pods


def test_a_pod_has_the_defaults_of_the_server(cluster: Cluster) -> None:
    made = create(cluster, "pods", pod("p"))
    spec, container = made["spec"], made["spec"]["containers"][0]
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert (spec["priority"], spec["serviceAccountName"], spec["enableServiceLinks"]) == (0, "default", True)
    assert [(t["key"], t["tolerationSeconds"]) for t in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", 300),
        ("node.kubernetes.io/unreachable", 300),
    ]
    assert (container["imagePullPolicy"], container["terminationMessagePath"]) == ("Always", "/dev/termination-log")
    assert container["volumeMounts"][0]["name"] == spec["volumes"][0]["name"]


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
        ({"limits": {"cpu": "0"}}, "BestEffort"),
    ],
)
def test_the_quality_of_service_follows_from_the_resources(cluster: Cluster, resources: Object, quality: str) -> None:
    obj = pod("p")
    obj["spec"]["containers"][0]["resources"] = resources
    assert create(cluster, "pods", obj)["status"]["qosClass"] == quality


@pytest.mark.parametrize(
    ("image", "policy"),
    [("x", "Always"), ("x:latest", "Always"), ("x:1", "IfNotPresent"), ("r:5000/x", "Always"), ("x@sha256:0", "IfNotPresent")],
)
def test_untagged_images_are_always_pulled(cluster: Cluster, image: str, policy: str) -> None:
    obj = pod("p")
    obj["spec"]["containers"][0]["image"] = image
    assert create(cluster, "pods", obj)["spec"]["containers"][0]["imagePullPolicy"] == policy


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"containers": []}, "spec.containers: Required value", id="no containers"),
        pytest.param(
            {"restartPolicy": "Maybe"},
            'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always", "Never", "OnFailure"',
            id="restart policy",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
            id="deadline",
        ),
        pytest.param(
            {"nodeSelector": {"a": "b c"}}, 'spec.nodeSelector: Invalid value: "b c": a valid label must be', id="node selector"
        ),
        pytest.param(
            {"hostname": "A"}, 'spec.hostname: Invalid value: "A": a lowercase RFC 1123 label must consist of', id="host name"
        ),
        pytest.param(
            {"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"', id="volume twice"
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
            "may not specify more than 1 volume type",
            id="two volume types",
        ),
        pytest.param({"tolerations": [{"operator": "Equal"}]}, "operator must be Exists when `key` is empty", id="toleration"),
    ],
)
def test_pods_that_are_refused(cluster: Cluster, change: Object, text: str) -> None:
    error = refusal(cluster, "pods", pod("p", **change))
    assert (error.code, error.reason) == (422, "Invalid")
    assert text in error.message


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"name": ""}, "spec.containers[0].name: Required value"),
        ({"image": ""}, "spec.containers[0].image: Required value"),
        ({"env": [{"name": "a b="}]}, "a valid environment variable name must consist only of printable ASCII characters"),
        ({"volumeMounts": [{"name": "v", "mountPath": "/x"}]}, 'spec.containers[0].volumeMounts[0].name: Not found: "v"'),
        ({"ports": [{"containerPort": 70000}]}, "must be between 1 and 65535, inclusive"),
        (
            {"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}},
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        ({"resources": {"limits": {"gpu": "1"}}}, "must be a standard resource type or fully qualified"),
        ({"imagePullPolicy": "Maybe"}, "Unsupported value"),
    ],
)
def test_containers_that_are_refused(cluster: Cluster, change: Object, text: str) -> None:
    obj = pod("p")
    obj["spec"]["containers"][0].update(change)
    assert text in refusal(cluster, "pods", obj).message


def test_an_unknown_service_account_or_priority_is_forbidden(cluster: Cluster) -> None:
    unknown = pod("p", serviceAccountName="nope")
    unknown["metadata"] = {"generateName": "job-0-"}
    text = 'pods "job-0-" is forbidden: error looking up service account default/nope: serviceaccount "nope" not found'
    assert refusal(cluster, "pods", unknown).message == text
    assert "no PriorityClass with name x was found" in refusal(cluster, "pods", pod("p", priorityClassName="x")).message
    critical = create(cluster, "pods", pod("p", priorityClassName="system-node-critical"))
    assert critical["spec"]["priority"] == 2_000_001_000


def test_namespaces_must_exist_and_not_be_on_their_way_out(cluster: Cluster) -> None:
    error = refusal(cluster, "configmaps", config_map("c", namespace="nons"))
    assert (error.code, error.message) == (404, 'namespaces "nons" not found')
    cluster.create("namespaces", {"metadata": {"name": "old"}})
    cluster.store.delete("namespaces", None, "old")
    error = refusal(cluster, "configmaps", config_map("c", namespace="old"))
    assert "unable to create new content in namespace old because it is being terminated" in error.message
    assert error.details["causes"][0]["reason"] == "NamespaceTerminating"


# -- Jobs


def test_a_job_has_the_defaults_of_the_server(cluster: Cluster) -> None:
    made = create(cluster, JOBS, job("j"))
    spec, uid = made["spec"], made["metadata"]["uid"]
    numbers = {key: spec[key] for key in ("parallelism", "completions", "backoffLimit", "completionMode", "suspend")}
    assert numbers == {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert made["metadata"]["labels"] == spec["template"]["metadata"]["labels"]
    assert spec["template"]["metadata"]["labels"]["job-name"] == "j"
    assert "enableServiceLinks" not in spec["template"]["spec"]


@pytest.mark.parametrize(
    ("spec", "defaults"),
    [
        ({"parallelism": 3}, {"completions": None}),
        ({"completions": 3}, {"parallelism": 1}),
        ({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 0}, {"backoffLimit": 2**31 - 1}),
        ({"podFailurePolicy": {"rules": []}}, {"podReplacementPolicy": "Failed"}),
    ],
)
def test_defaults_of_a_job_that_depend_on_others(cluster: Cluster, spec: Object, defaults: Object) -> None:
    made = create(cluster, JOBS, job("j", **spec))["spec"]
    assert {key: made.get(key) for key in defaults} == defaults


RULE = {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"backoffLimit": -1}, "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0"),
        ({"completionMode": "Indexed", "parallelism": 1}, "spec.completions: Required value: when completion mode is Indexed"),
        ({"completionMode": "Odd"}, 'spec.completionMode: Unsupported value: "Odd"'),
        ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob"}]}},
            "specifying one of OnExitCodes and OnPodConditions is required",
        ),
        ({"podFailurePolicy": {"rules": [{**RULE, "action": "Odd"}]}}, 'rules[0].action: Unsupported value: "Odd"'),
        (
            {"podFailurePolicy": {"rules": [RULE]}, "podReplacementPolicy": "TerminatingOrFailed"},
            "spec.podReplacementPolicy: Unsupported value",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}},
            "must not be 0 for the In operator",
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 1]}}]}},
            "must be ordered",
        ),
    ],
)
def test_jobs_that_are_refused(cluster: Cluster, spec: Object, text: str) -> None:
    assert text in refusal(cluster, JOBS, job("j", **spec)).message


def test_a_bad_template_is_refused_with_the_job(cluster: Cluster) -> None:
    bad = job("j")
    bad["metadata"]["labels"] = {"own": "label"}  # a Job without labels takes those of its template
    bad["spec"]["template"]["metadata"] = {"labels": {"a": "b c"}}
    message = refusal(cluster, JOBS, bad).message
    assert message.startswith('Job.batch "j" is invalid: spec.template.labels: Invalid value: "b c": a valid label must be')
    bad = job("j")
    bad["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    text = 'Job.batch "j" is invalid: spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'
    assert refusal(cluster, JOBS, bad).message == text


def test_several_broken_rules_are_told_together(cluster: Cluster) -> None:
    error = refusal(cluster, JOBS, job("j", parallelism=-1, backoffLimit=-1))
    assert error.message.startswith('Job.batch "j" is invalid: [spec.parallelism: ')
    assert [cause["field"] for cause in error.details["causes"]] == ["spec.parallelism", "spec.backoffLimit"]


# -- JobSets


def test_a_jobset_has_the_defaults_of_its_webhook(cluster: Cluster) -> None:
    obj = jobset("js", failurePolicy={"maxRestarts": 1, "rules": [{"action": "FailJobSet"}]})
    del obj["spec"]["replicatedJobs"][0]["replicas"]
    del worker_pod(obj)["restartPolicy"]
    made = create(cluster, JOBSETS, {**obj, "status": {"restarts": 3}})
    spec = made["spec"]
    assert spec["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert (spec["startupPolicy"], spec["successPolicy"]) == ({"startupPolicyOrder": "AnyOrder"}, {"operator": "All"})
    assert spec["failurePolicy"]["restartStrategy"] == "Recreate"
    assert spec["failurePolicy"]["rules"][0]["name"] == "failurePolicyRule0"
    control = spec["replicatedJobs"][0]
    assert (control["replicas"], control["groupName"]) == (1, "default")
    assert set(control["template"]["spec"]) == {"completionMode", "template"}
    assert worker_pod(made)["restartPolicy"] == "OnFailure"
    assert "status" not in made


Change = Callable[[Object], Any]
WEBHOOK = 'admission webhook "vjobset.kb.io" denied the request: '


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            lambda o: o["metadata"].update(name="a.b"),
            WEBHOOK + 'spec.replicatedJobs[0].name: Invalid value: "a.b-control-0": a DNS-1035 label',
            id="name",
        ),
        pytest.param(
            lambda o: o["metadata"].update(name="x" * 53),
            "pod names generated for this JobSet will exceed 63 characters",
            id="pod names too long",
        ),
        pytest.param(
            lambda o: o["metadata"].update(name="x" * 54),
            "job names generated for this JobSet will exceed 63 characters",
            id="job names too long",
        ),
        pytest.param(
            lambda o: o["spec"].update(successPolicy={"operator": "Any", "targetReplicatedJobs": ["nope"]}),
            WEBHOOK + "invalid replicatedJob name 'nope' does not appear in .spec.ReplicatedJobs",
            id="success policy",
        ),
        pytest.param(
            lambda o: o["spec"]["replicatedJobs"][0].update(dependsOn=[{"name": "worker", "status": "Ready"}]),
            WEBHOOK + "DependsOn can't be set for the first ReplicatedJob",
            id="dependsOn of the first",
        ),
        pytest.param(
            lambda o: o["spec"]["replicatedJobs"][1].update(dependsOn=[{"name": "x", "status": "Ready"}]),
            "replicatedJob: worker cannot depend on replicatedJob: x",
            id="dependsOn of an unknown",
        ),
        pytest.param(
            lambda o: o["spec"].update(coordinator={"replicatedJob": "control"}),
            WEBHOOK + "job for coordinator pod must be indexed completion mode, and completions number must be set",
            id="coordinator",
        ),
        pytest.param(
            lambda o: o["spec"].update(coordinator={"replicatedJob": "worker", "podIndex": 3}),
            "coordinator pod index 3 is invalid for replicatedJob worker job index 0",
            id="coordinator index",
        ),
        pytest.param(
            lambda o: o["spec"].update(network={"subdomain": "A"}), "spec.network.subdomain: Invalid value", id="subdomain"
        ),
        pytest.param(lambda o: o["spec"].update(managedBy="x"), "must be a domain-prefixed path", id="managedBy"),
        pytest.param(
            lambda o: o["spec"].update(failurePolicy={"rules": [{"action": "FailJobSet", "onJobFailureReasons": ["Odd"]}]}),
            "invalid job failure reason 'Odd'",
            id="failure reason",
        ),
        pytest.param(
            lambda o: o["spec"]["replicatedJobs"][1].update(replicas=2**30),
            "the product of replicas and parallelism must not exceed 2147483647",
            id="too many",
        ),
    ],
)
def test_jobsets_that_the_webhook_forbids(cluster: Cluster, change: Change, text: str) -> None:
    obj = jobset("js")
    change(obj)
    error = refusal(cluster, JOBSETS, obj)
    assert (error.code, error.reason) == (403, "Forbidden")
    assert text in error.message


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            lambda o: o["spec"]["replicatedJobs"][1].update(name="control"),
            'spec.replicatedJobs[1]: Duplicate value: {"name":"control"}',
            id="name twice",
        ),
        pytest.param(
            lambda o: o["spec"].update(successPolicy={"operator": "Most"}),
            'spec.successPolicy.operator: Unsupported value: "Most": supported values: "All", "Any"',
            id="enum",
        ),
        pytest.param(
            lambda o: o["spec"].update(ttlSecondsAfterFinished=-1),
            "spec.ttlSecondsAfterFinished in body should be greater than or equal to 0",
            id="minimum",
        ),
        pytest.param(
            lambda o: worker_pod(o).pop("containers"),
            'spec.replicatedJobs[1].template.spec.template.spec.containers in body must be of type array: "null"',
            id="no containers",
        ),
        pytest.param(lambda o: o["metadata"].update(labels={"a": "b c"}), 'metadata.labels: Invalid value: "b c"', id="label"),
        pytest.param(
            lambda o: o["spec"]["replicatedJobs"][1].pop("name"), "spec.replicatedJobs[1].name: Required value", id="no name"
        ),
        pytest.param(
            lambda o: (
                o["spec"].update(startupPolicy={"startupPolicyOrder": "InOrder"}),
                o["spec"]["replicatedJobs"][1].update(dependsOn=[{"name": "control", "status": "Ready"}]),
            ),
            "StartupPolicy and DependsOn APIs are mutually exclusive",
            id="order said twice",
        ),
    ],
)
def test_jobsets_that_the_schema_refuses(cluster: Cluster, change: Change, text: str) -> None:
    obj = jobset("js")
    change(obj)
    error = refusal(cluster, JOBSETS, obj)
    assert (error.code, error.reason) == (422, "Invalid")
    assert text in error.message


def test_wrong_types_are_refused_by_the_mutating_webhook_without_a_reason(cluster: Cluster) -> None:
    obj = jobset("js", replicatedJobs="x")
    error = refusal(cluster, JOBSETS, obj)
    assert (error.code, error.reason) == (400, "")
    assert 'webhook "mjobset.kb.io" denied the request: json: cannot unmarshal string into Go struct field' in error.message
    assert error.message.endswith("JobSetSpec.spec.replicatedJobs of type []v1alpha2.ReplicatedJob")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda o: worker_pod(o)["containers"][0].update(volumeMounts=[{"name": "no", "mountPath": "/x"}]),
            id="unknown volume",
        ),
        pytest.param(lambda o: worker_pod(o)["containers"][0].update(env=[{"name": "a b=", "value": "x"}]), id="bad variable"),
        pytest.param(lambda o: worker_pod(o).update(restartPolicy="Always"), id="restart policy"),
        pytest.param(lambda o: o["spec"]["replicatedJobs"][1].update(replicas=-1), id="negative replicas"),
        pytest.param(lambda o: o["spec"].update(replicatedJobs=[]), id="no jobs at all"),
    ],
)
def test_jobsets_are_accepted_although_their_jobs_will_be_refused(cluster: Cluster, change: Change) -> None:
    obj = jobset("js")
    change(obj)
    assert create(cluster, JOBSETS, obj)["metadata"]["uid"]


def update(cluster: Cluster, resource: str, old: Object, change: Change) -> Object:
    new = clone(old)
    change(new)
    admitted, _ = cluster.admission.admit_update(resource, new, old)  # type: ignore[attr-defined]
    return dict(admitted)


@pytest.mark.parametrize(
    ("change", "code", "text"),
    [
        (lambda o: o["spec"]["replicatedJobs"][1].update(replicas=2), 403, "field is immutable"),
        (lambda o: worker_pod(o)["containers"][0].update(image="y"), 403, "field is immutable"),
        (lambda o: o["spec"].update(managedBy="x/y"), 403, 'spec.managedBy: Invalid value: "x/y": field is immutable'),
        (
            lambda o: o["spec"].update(successPolicy={"operator": "Any"}),
            422,
            "spec.successPolicy: Invalid value: Value is immutable",
        ),
        (lambda o: o["spec"].update(network={"subdomain": "z"}), 422, "spec.network: Invalid value: Value is immutable"),
    ],
)
def test_most_of_a_jobset_is_immutable(cluster: Cluster, change: Change, code: int, text: str) -> None:
    made = create(cluster, JOBSETS, jobset("js"))
    with pytest.raises(ApiError) as refused:
        update(cluster, JOBSETS, made, change)
    assert refused.value.code == code
    assert text in refused.value.message


def test_scheduling_may_change_while_suspended_and_not_while_running(cluster: Cluster) -> None:
    made = create(cluster, JOBSETS, jobset("js"))

    def select(obj: Object) -> None:
        worker_pod(obj)["nodeSelector"] = {"a": "b"}

    assert worker_pod(update(cluster, JOBSETS, made, select))["nodeSelector"] == {"a": "b"}
    running = create(cluster, JOBSETS, jobset("running", suspend=False))
    with pytest.raises(ApiError, match="field is immutable"):
        update(cluster, JOBSETS, running, select)


@pytest.mark.parametrize(
    ("spec", "change", "text"),
    [
        ({}, lambda o: o["spec"]["template"]["spec"]["containers"][0].update(image="q"), "field is immutable"),
        ({}, lambda o: o["spec"].update(completions=3), "spec.completions: Invalid value: 3: field is immutable"),
        (
            {"completionMode": "Indexed", "completions": 2, "parallelism": 2},
            lambda o: o["spec"].update(completions=7),
            "spec.completions: Invalid value: 7: can only be modified in tandem with spec.parallelism",
        ),
        ({}, lambda o: o["spec"].update(completionMode="Indexed"), "spec.completionMode: Invalid value"),
    ],
)
def test_what_may_not_change_in_a_job(cluster: Cluster, spec: Object, change: Change, text: str) -> None:
    made = create(cluster, JOBS, job("j", **spec))
    with pytest.raises(ApiError) as refused:
        update(cluster, JOBS, made, change)
    assert refused.value.code == 422
    assert text in refused.value.message


def test_a_job_may_be_scaled_and_placed_while_suspended(cluster: Cluster) -> None:
    made = create(cluster, JOBS, job("j", suspend=True, completionMode="Indexed", completions=2, parallelism=2))
    assert update(cluster, JOBS, made, lambda o: o["spec"].update(completions=3, parallelism=3))["spec"]["completions"] == 3

    def place(obj: Object) -> None:
        obj["spec"]["template"]["spec"].update(nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}])
        obj["spec"]["template"]["metadata"]["annotations"] = {"k": "v"}

    assert update(cluster, JOBS, made, place)["spec"]["template"]["spec"]["nodeSelector"] == {"a": "b"}


def test_a_pod_may_only_change_its_images(cluster: Cluster) -> None:
    made = create(cluster, "pods", pod("p"))
    assert update(cluster, "pods", made, lambda o: o["spec"]["containers"][0].update(image="y"))
    with pytest.raises(ApiError, match="pod updates may not change fields other than"):
        update(cluster, "pods", made, lambda o: o["spec"].update(restartPolicy="Always"))


# -- the rest


@pytest.mark.parametrize(
    ("resource", "obj", "text"),
    [
        (
            "configmaps",
            config_map("Bad_N"),
            'metadata.name: Invalid value: "Bad_N": a lowercase RFC 1123 subdomain must consist of',
        ),
        ("configmaps", {"metadata": {}}, "metadata.name: Required value: name or generateName is required"),
        (
            "configmaps",
            config_map("c", labels={"a": "b c"}),
            'metadata.labels: Invalid value: "b c": a valid label must be an empty string',
        ),
        ("configmaps", config_map("c", {"a b": "x"}), "a valid config key must consist of"),
        ("configmaps", config_map("c", ownerReferences=[{"kind": "X", "name": "x", "uid": "u"}]), "version must not be empty"),
        ("services", {"metadata": {"name": "s"}, "spec": {}}, "spec.ports: Required value"),
        ("services", {"metadata": {"name": "0s"}, "spec": {"ports": [{"port": 1}]}}, "a DNS-1035 label must consist of"),
        (
            "leases.coordination.k8s.io",
            {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}},
            "must be greater than 0",
        ),
        ("persistentvolumeclaims", {"metadata": {"name": "c"}, "spec": {}}, "at least 1 access mode is required"),
        (
            "events",
            {"metadata": {"name": "e"}, "involvedObject": {"namespace": "other"}},
            'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
        ),
    ],
)
def test_other_objects_that_are_refused(cluster: Cluster, resource: str, obj: Object, text: str) -> None:
    error = refusal(cluster, resource, obj)
    assert error.code == 422
    assert text in error.message


def test_services_get_an_address_and_headless_ones_none(cluster: Cluster) -> None:
    first = create(cluster, "services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})["spec"]
    headless = create(cluster, "services", {"metadata": {"name": "b"}, "spec": {"clusterIP": "None"}})["spec"]
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["clusterIP"].startswith("10.96.")
    assert headless["clusterIPs"] == ["None"]


def test_text_of_a_secret_is_stored_as_base64(cluster: Cluster) -> None:
    made = create(cluster, "secrets", {"metadata": {"name": "s"}, "stringData": {"a": "hi"}})
    assert (made["type"], made["data"]) == ("Opaque", {"a": "aGk="})
    assert "stringData" not in made


def test_an_immutable_config_map_keeps_its_data(cluster: Cluster) -> None:
    made = create(cluster, "configmaps", {**config_map("c"), "immutable": True})
    with pytest.raises(ApiError, match="field is immutable when `immutable` is set"):
        update(cluster, "configmaps", made, lambda o: o["data"].update(a="2"))


def test_an_object_given_to_admission_is_not_changed(cluster: Cluster) -> None:
    for resource, obj in (("pods", pod("p")), (JOBS, job("j")), (JOBSETS, jobset("js"))):
        before = clone(obj)
        create(cluster, resource, obj)
        assert obj == before


# -- quota


def test_a_quota_refuses_what_it_has_no_room_for(cluster: Cluster) -> None:
    hard = {"pods": "1", "count/jobsets.jobset.x-k8s.io": "1"}
    create(cluster, "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    create(cluster, "pods", pod("p1"))
    text = 'pods "p2" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert refusal(cluster, "pods", pod("p2")).message == text
    create(cluster, JOBSETS, jobset("j1"))
    text = "exceeded quota: q, requested: count/jobsets.jobset.x-k8s.io=1, used: count/jobsets.jobset.x-k8s.io=1"
    assert text in refusal(cluster, JOBSETS, jobset("j2")).message


def test_ended_pods_leave_room(cluster: Cluster) -> None:
    create(cluster, "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}})
    create(cluster, "pods", pod("p1"))
    cluster.store.modify("pods", "default", "p1", lambda obj: obj["status"].update(phase="Succeeded"))
    create(cluster, "pods", pod("p2"))


def test_a_quota_on_resources_counts_and_demands_them(cluster: Cluster) -> None:
    create(cluster, "resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1"}}})
    assert "failed quota: q: must specify requests.cpu for: main" in refusal(cluster, "pods", pod("p1")).message
    heavy = pod("p1")
    heavy["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "600m"}}
    create(cluster, "pods", heavy)
    text = "exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    assert text in refusal(cluster, "pods", {**heavy, "metadata": {"name": "p2"}}).message
