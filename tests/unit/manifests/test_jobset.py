"""JobSets: one Indexed Job a group, control first, and nothing that hides or repeats a failure."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.manifests.jobset import jobset
from metaflow_extensions.kubernetes_ext.spec import labels
from tests.builders import make_spec


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        pytest.param(1, [("control", 1)], id="control alone"),
        pytest.param(2, [("control", 1), ("worker", 1)], id="one worker"),
        pytest.param(16, [("control", 1), ("worker", 15)], id="many workers"),
    ],
)
def test_a_gang_is_one_indexed_job_a_group(size: int, expected: list[tuple[str, int]]) -> None:
    replicated = jobset(make_spec(size))["spec"]["replicatedJobs"]
    assert [(item["name"], item["template"]["spec"]["completions"]) for item in replicated] == expected
    for item in replicated:
        body = item["template"]["spec"]
        assert (item["replicas"], body["completionMode"], body["parallelism"]) == (1, "Indexed", body["completions"])


def test_only_the_jobset_has_a_time_to_live() -> None:
    body = jobset(make_spec(4, ttl_seconds=60))["spec"]
    assert body["ttlSecondsAfterFinished"] == 60
    assert all("ttlSecondsAfterFinished" not in item["template"]["spec"] for item in body["replicatedJobs"])


def test_without_a_time_to_live_there_is_none() -> None:
    assert "ttlSecondsAfterFinished" not in jobset(make_spec(2))["spec"]


def test_jobset_decides_nothing_for_us() -> None:
    body = jobset(make_spec(2))["spec"]
    assert body["failurePolicy"] == {"maxRestarts": 0}
    assert not {"startupPolicy", "successPolicy", "suspend", "managedBy", "coordinator"} & set(body)


def test_names_resolve_before_ranks_are_ready_and_no_host_name_is_cut_off() -> None:
    body = jobset(make_spec(2))["spec"]
    assert body["network"] == {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    assert "setHostnameAsFQDN" not in body["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]


def test_a_queue_is_named_on_the_jobset_alone() -> None:
    manifest = jobset(make_spec(2, labels={labels.KUEUE_QUEUE: "research", "a": "b"}))
    assert manifest["metadata"]["labels"][labels.KUEUE_QUEUE] == "research"
    for item in manifest["spec"]["replicatedJobs"]:
        assert item["template"]["metadata"]["labels"] == {"a": "b"}
        assert item["template"]["spec"]["template"]["metadata"]["labels"] == {"a": "b"}


def test_the_api_version_is_the_callers() -> None:
    assert jobset(make_spec(2), "jobset.example.com/v1")["apiVersion"] == "jobset.example.com/v1"
