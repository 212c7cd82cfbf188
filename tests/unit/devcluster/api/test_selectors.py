"""Label and field selectors."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_devcluster.api.selectors import selected_name, selector
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.resources import jobset_resource, served_resources

RESOURCES = served_resources(jobset=jobset_resource())
OBJECTS: list[dict[str, Any]] = [
    {"metadata": {"name": "one", "labels": {"t": "x", "a": "1"}}, "status": {"phase": "Running"}},
    {"metadata": {"name": "two", "labels": {"t": "x", "a": "2"}}, "status": {"phase": "Failed"}},
    {"metadata": {"name": "three", "labels": {"t": "x"}}, "spec": {"nodeName": "n", "hostNetwork": True}},
    {"metadata": {"name": "four"}},
]


def selected(resource: str, labels: str = "", fields: str = "") -> list[str]:
    where = selector(RESOURCES[resource], labels, fields)
    return [obj["metadata"]["name"] for obj in OBJECTS if where is None or where(obj)]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        pytest.param("", ["one", "two", "three", "four"], id="empty selects all"),
        pytest.param("a=1", ["one"], id="equal"),
        pytest.param("a==2", ["two"], id="double equal"),
        pytest.param("a!=1", ["two", "three", "four"], id="unequal holds without the label"),
        pytest.param("a in (1, 2)", ["one", "two"], id="in"),
        pytest.param("a notin (1)", ["two", "three", "four"], id="notin holds without the label"),
        pytest.param("a", ["one", "two"], id="exists"),
        pytest.param("!a", ["three", "four"], id="does not exist"),
        pytest.param("t=x,!a", ["three"], id="all terms must hold"),
        pytest.param("a gt 1", ["two"], id="greater"),
        pytest.param("a<2", ["one"], id="less"),
        pytest.param("a=", [], id="an empty value"),
        pytest.param("in=1", [], id="a key that is an operator"),
    ],
)
def test_label_selectors(labels: str, names: list[str]) -> None:
    assert selected("pods", labels) == names


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=1", "unable to parse requirement: found '=', expected: !, identifier, or 'end of string'"),
        ("a in 1", "unable to parse requirement: found '1', expected: '('"),
        ("a in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a=1,", "found '', expected: identifier after ','"),
        ("a=1 b", "found 'b', expected: ',' or 'end of string'"),
    ],
)
def test_label_selectors_that_cannot_be_read(labels: str, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selected("pods", labels)
    assert (refused.value.code, refused.value.message) == (400, text)


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("metadata.name=one", ["one"]),
        ("status.phase!=Failed,status.phase!=Running", ["three", "four"]),
        ("spec.nodeName=", ["one", "two", "four"]),
        ("spec.nodeName==n", ["three"]),
        ("spec.hostNetwork=true", ["three"]),
    ],
)
def test_field_selectors(fields: str, names: list[str]) -> None:
    assert selected("pods", fields=fields) == names


@pytest.mark.parametrize(
    ("resource", "fields", "text"),
    [
        ("pods", "status.foo=x", "field label not supported: status.foo"),
        ("jobs.batch", "status.active=1", 'field label "status.active" not supported for Job'),
        ("jobsets.jobset.x-k8s.io", "spec.suspend=true", "field label not supported: spec.suspend"),
        ("configmaps", "data=x", '"data" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("pods", "nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
    ],
)
def test_fields_that_are_not_selectable(resource: str, fields: str, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        selected(resource, fields=fields)
    assert (refused.value.code, refused.value.message) == (400, text)


def test_the_source_of_an_event_is_its_component_in_either_form() -> None:
    where = selector(RESOURCES["events"], "", "source=kubelet")
    assert where
    assert where({"metadata": {}, "source": {"component": "kubelet"}})
    assert where({"metadata": {}, "reportingComponent": "kubelet"})


def test_a_demanded_name_is_known_without_looking_at_objects() -> None:
    assert selected_name("status.phase=Running,metadata.name=a") == "a"
    assert selected_name("metadata.name!=a") is None
    assert selected_name("") is None
