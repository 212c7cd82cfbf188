"""Ranks as pods without a Job: what a program in them sees is what it would see in a JobSet."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.backends.appwrapper import PodsInAppWrapperBackend
from metaflow_extensions.kubernetes_ext.backends.mcad import MCADBackend
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.manifests.bare_pods import bare_pods, service
from metaflow_extensions.kubernetes_ext.spec import labels
from metaflow_extensions.kubernetes_ext.spec.environment import EnvVar, fields, literals
from metaflow_extensions.kubernetes_ext.spec.fault_tolerance import FaultTolerance
from metaflow_extensions.kubernetes_ext.spec.resources import Resources
from tests.builders import make_container, make_gang, make_spec

INDEX = fields({"INDEX": f"metadata.annotations['{labels.COMPLETION_INDEX}']"})
JOBSET = fields({"JOBSET": f"metadata.labels['{labels.JOBSET_NAME}']"})
ADDRESS = (EnvVar("ADDRESS", template="$(JOBSET)-control-0-0.$(JOBSET)"),)


def gang(size: int = 3, **more: Any) -> Any:
    container = make_container(env=(*JOBSET, *ADDRESS, *INDEX, *literals({"A": "$(B)"}), *fields({"POD": "metadata.name"})))
    return make_spec(groups=make_gang(size, container), **more)


def items(manifest: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    found = manifest["spec"]["resources"]["GenericItems"]
    return [item for item in found if item["generictemplate"]["kind"] == kind]


def test_every_rank_has_the_name_and_the_host_name_that_jobset_would_give_it() -> None:
    spec = gang()
    names = [f"{spec.name}-control-0-0", f"{spec.name}-worker-0-0", f"{spec.name}-worker-0-1"]
    pods = bare_pods(spec)
    assert [pod["metadata"]["name"] for pod in pods] == names
    assert [(pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods] == [(name, spec.name) for name in names]
    assert service(spec)["metadata"]["name"] == spec.name
    assert service(spec)["spec"]["selector"].items() <= pods[0]["metadata"]["labels"].items()


def test_what_jobs_and_jobsets_would_write_into_a_pod_is_literal_and_the_rest_as_it_was() -> None:
    spec = gang()
    (container,) = bare_pods(spec)[2]["spec"]["containers"]
    env = {variable.pop("name"): variable for variable in container["env"]}
    assert env["JOBSET"] == {"value": spec.name}
    assert env["INDEX"] == env["JOB_COMPLETION_INDEX"] == {"value": "1"}
    assert env["ADDRESS"] == {"value": "$(JOBSET)-control-0-0.$(JOBSET)"}
    assert list(env).index("JOBSET") < list(env).index("ADDRESS")
    assert env["A"] == {"value": "$$(B)"}
    assert env["POD"] == {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}


def test_queue_labels_are_the_wrappers_alone() -> None:
    made = PodsInAppWrapperBackend().build(gang(labels={labels.KUEUE_QUEUE: "team", "mine": "1"}))
    assert made["metadata"]["labels"] == {labels.KUEUE_QUEUE: "team", "mine": "1"}
    for component in made["spec"]["components"]:
        told = component["template"]["metadata"]["labels"]
        assert (labels.KUEUE_QUEUE in told, told["mine"]) == (False, "1")


def test_an_appwrapper_of_pods_declares_each_and_takes_no_more_than_kueue_does() -> None:
    made = PodsInAppWrapperBackend().build(gang(8))
    assert [one.get("podSets") for one in made["spec"]["components"]] == [None] + [[{"replicas": 1, "path": "template"}]] * 8
    with pytest.raises(InvalidSpec, match="at most 8 sets of pods"):
        PodsInAppWrapperBackend().build(gang(9))


class TestMCAD:
    def test_without_retries_it_is_told_nothing_of_them_since_a_limit_of_0_is_none(self) -> None:
        made = MCADBackend().build(gang(priority=7))
        assert (made["apiVersion"], made["kind"]) == ("workload.codeflare.dev/v1beta1", "AppWrapper")
        assert made["spec"].keys() == {"priority", "resources"}
        assert made["spec"]["priority"] == 7
        assert len(items(made, "Pod")) == 3
        assert len(items(made, "Service")) == 1

    def test_the_limit_of_failures_is_one_of_requeuings_and_said_beside(self) -> None:
        tolerance = FaultTolerance(retry_limit=2, retry_pause=60, forceful_deletion_grace=30)
        made = MCADBackend().build(gang(fault_tolerance=tolerance, requeues=9))
        assert made["spec"]["schedulingSpec"] == {
            "minAvailable": 3,
            "requeuing": {
                "timeInSeconds": 60,
                "maxTimeInSeconds": 0,
                "growthType": "exponential",
                "maxNumRequeuings": 2,
                "forcefulDeletionAfterSeconds": 30,
            },
        }
        assert made["metadata"]["annotations"][f"{labels.APPWRAPPER}retryLimit"] == "2"

    def test_requeuings_alone_are_no_limit_of_failures(self) -> None:
        made = MCADBackend().build(gang(requeues=3))
        assert made["spec"]["schedulingSpec"]["requeuing"]["maxNumRequeuings"] == 3
        assert made["spec"]["schedulingSpec"]["requeuing"]["timeInSeconds"] == 300
        assert f"{labels.APPWRAPPER}retryLimit" not in made["metadata"].get("annotations", {})

    def test_what_every_pod_asks_for_is_counted(self) -> None:
        container = make_container(resources=Resources(cpu="2", memory="4Gi", gpu=1))
        made = MCADBackend().build(make_spec(groups=make_gang(2, container)))
        for item in items(made, "Pod"):
            (counted,) = item["custompodresources"]
            given = item["generictemplate"]["spec"]["containers"][0]["resources"]
            assert counted == {"replicas": 1, "requests": given["requests"], "limits": given["limits"]}
            assert counted["limits"]["nvidia.com/gpu"] == "1"

    def test_the_coscheduling_plugin_has_a_group_for_each_role_and_none_beside(self) -> None:
        spec = gang(gang="coscheduling")
        made = MCADBackend().build(spec)
        groups = {
            item["generictemplate"]["metadata"]["name"]: item["generictemplate"]["spec"] for item in items(made, "PodGroup")
        }
        assert groups == {f"{spec.name}-control": {"minMember": 1}, f"{spec.name}-worker": {"minMember": 2}}
        told = [item["generictemplate"]["metadata"]["labels"][labels.COSCHEDULING_GROUP] for item in items(made, "Pod")]
        assert told == [f"{spec.name}-control", f"{spec.name}-worker", f"{spec.name}-worker"]
        assert MCADBackend().pod_group(spec) is None
        assert MCADBackend().pod_group(gang(gang="native")) is not None
