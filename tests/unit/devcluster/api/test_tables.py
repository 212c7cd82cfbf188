"""The cells of kubectl's tables."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from metaflow_devcluster.api.paths import json_path
from metaflow_devcluster.api.table_cells import (
    completions,
    duration,
    event_age,
    human,
    job_status,
    node_status,
    pod_status,
    quota_column,
)
from metaflow_devcluster.api.tables import Tables, printer_columns
from metaflow_devcluster.resources import jobset_resource, served_resources

RESOURCES = served_resources(jobset=jobset_resource())
NOW = datetime.datetime(2026, 1, 1, 0, 10, tzinfo=datetime.timezone.utc)
Object = dict[str, Any]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3600, "60m"),
        (3 * 3600 + 60, "3h1m"),
        (10 * 3600, "10h"),
        (50 * 3600, "2d2h"),
        (9 * 86400, "9d"),
        (800 * 86400, "2y70d"),
        (-5, "<invalid>"),
    ],
)
def test_durations_are_abbreviated(seconds: int, text: str) -> None:
    assert human(seconds) == text


def container(**state: Any) -> Object:
    return {"name": "c", "state": state}


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        ({"status": {"phase": "Pending"}}, "Pending"),
        ({"status": {"phase": "Running", "containerStatuses": [container(running={})]}}, "Running"),
        (
            {"status": {"phase": "Pending", "containerStatuses": [container(waiting={"reason": "ImagePullBackOff"})]}},
            "ImagePullBackOff",
        ),
        ({"status": {"phase": "Failed", "containerStatuses": [container(terminated={"reason": "OOMKilled"})]}}, "OOMKilled"),
        ({"status": {"phase": "Failed", "containerStatuses": [container(terminated={"exitCode": 3})]}}, "ExitCode:3"),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, "Evicted"),
        ({"status": {"phase": "Running"}, "metadata": {"deletionTimestamp": "x"}}, "Terminating"),
        (
            {
                "status": {"phase": "Pending", "initContainerStatuses": [container(running={})]},
                "spec": {"initContainers": [{}, {}]},
            },
            "Init:0/2",
        ),
        (
            {"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}},
            "SchedulingGated",
        ),
    ],
)
def test_the_status_of_a_pod_is_its_most_telling_word(pod: Object, text: str) -> None:
    assert pod_status({"metadata": {}, "spec": {}, **pod}) == text


def condition(kind: str) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:02:00Z"}


@pytest.mark.parametrize("kind", ["Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"])
def test_the_status_of_a_job_is_its_condition(kind: str) -> None:
    assert job_status({"metadata": {}, "status": {"conditions": [condition(kind)]}}) == kind


def test_completions_and_duration_of_a_job() -> None:
    status = {"startTime": "2026-01-01T00:00:00Z", "succeeded": 2}
    job = {"metadata": {}, "spec": {"completions": 3}, "status": status}
    assert (completions(job), duration(job, NOW)) == ("2/3", "10m")
    assert completions({**job, "spec": {"parallelism": 4}}) == "2/1 of 4"
    assert duration({**job, "status": {**status, "conditions": [condition("Failed")]}}, NOW) == "2m"
    assert duration({**job, "status": {}}, NOW) == ""


def test_an_event_that_repeats_says_how_often() -> None:
    event = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:09:00Z", "count": 3}
    assert event_age(event, NOW) == "60s (x3 over 10m)"
    assert event_age({"eventTime": "2026-01-01T00:09:00.000000Z"}, NOW) == "60s"


def test_nodes_and_quotas() -> None:
    ready = {"spec": {"unschedulable": True}, "status": {"conditions": [condition("Ready")]}}
    assert node_status(ready) == "Ready,SchedulingDisabled"
    quota = {"status": {"hard": {"pods": "2", "limits.cpu": "1"}, "used": {"pods": "1"}}}
    assert (quota_column(quota, limits=False), quota_column(quota, limits=True)) == ("pods: 1/2", "limits.cpu: 0/1")


def test_a_jobset_row_has_null_for_what_is_not_there() -> None:
    obj = {"metadata": {"name": "js", "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"suspend": True}}
    resource = RESOURCES["jobsets.jobset.x-k8s.io"]
    table = Tables().table(resource, [obj], {"resourceVersion": "5"})
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "TerminalState",
        "Restarts",
        "Completed",
        "Suspended",
        "Age",
    ]
    assert table["rows"][0]["cells"][:5] == ["js", None, None, None, "true"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize(("include", "given"), [("None", None), ("Object", "Pod"), ("Metadata", "PartialObjectMetadata")])
def test_rows_carry_what_is_asked_for(include: str, given: str | None) -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
    row = Tables().table(RESOURCES["pods"], [pod], {}, include=include)["rows"][0]
    assert row.get("object", {}).get("kind") == given


@pytest.mark.parametrize("resource", [r.name for r in RESOURCES if "list" in r.verbs])
def test_every_resource_has_a_table_even_of_bare_objects(resource: str) -> None:
    obj = {"metadata": {"name": "x"}, "spec": {"template": {"spec": {}}}}
    table = Tables().table(RESOURCES[resource], [obj], {})
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])


def test_printer_columns_of_a_custom_kind() -> None:
    columns = printer_columns([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}])
    _, _, _, cell = columns[1]
    assert cell({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, NOW) == "10m"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (".a.b", 1),
        (".list[1]", 5),
        ('.c[?(@.type=="X")].status', "True"),
        (".metadata.labels['k/l']", "v"),
        (".metadata.labels.k\\.l", None),
        (".nothing.here", None),
    ],
)
def test_json_paths(path: str, value: Any) -> None:
    obj = {"a": {"b": 1}, "list": [4, 5], "c": [{"type": "X", "status": "True"}], "metadata": {"labels": {"k/l": "v"}}}
    assert json_path(path)(obj) == value
