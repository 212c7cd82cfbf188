"""Pruning, Go's decoding errors, quantities, bodies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_devcluster.api.decoding import conform, duplicates, identified, parse, settle
from metaflow_devcluster.api.quantities import canonical, quantity
from metaflow_devcluster.api.schema import Schemas, Undecodable, prune, typed
from metaflow_devcluster.errors import ApiError
from metaflow_devcluster.resources import jobset_resource, served_resources

SCHEMAS = Schemas()
RESOURCES = served_resources(jobset=jobset_resource())


def root(kind: str, group: str = "", version: str = "v1") -> dict[str, Any]:
    found = SCHEMAS.root(group, version, kind)
    assert found
    return found


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        (2, "2"),
        (0.1, "100m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("4096M", "4096M"),
        ("4000M", "4G"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("100n", "100n"),
        ("512Ki", "512Ki"),
    ],
)
def test_quantities_are_answered_in_their_canonical_form(given_text: Any, expected: str) -> None:
    assert canonical(given_text) == expected


@pytest.mark.parametrize("text", ["abc", "", "1 Gi", "1Q", "--1", "Gi"])
def test_what_is_no_quantity_is_refused_with_the_pattern(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        quantity(text)


@given(st.integers(0, 10**9), st.sampled_from(["", "m", "k", "M", "Gi", "Ki", "Mi"]))
def test_the_canonical_form_means_the_same(number: int, unit: str) -> None:
    assert quantity(canonical(f"{number}{unit}")) == quantity(f"{number}{unit}")


def test_unknown_fields_are_dropped_and_named_with_their_path() -> None:
    pod = {"spec": {"bogus": 1, "containers": [{"name": "a"}, {"name": "b", "imagee": "x"}]}, "x": 1}
    pruned, unknown = prune(SCHEMAS, root("Pod"), pod)
    assert pruned == {"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}
    assert unknown == ["spec.bogus", "spec.containers[1].imagee", "x"]


def test_maps_and_free_form_fields_keep_everything() -> None:
    obj = {"metadata": {"labels": {"any": "thing"}, "managedFields": [{"fieldsV1": {"f:x": {}}}]}, "data": {"k": "v"}}
    assert prune(SCHEMAS, root("ConfigMap"), obj) == (obj, [])


@pytest.mark.parametrize(
    ("pod", "text"),
    [
        (
            {"spec": {"containers": "x"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            {"metadata": {"labels": {"a": 1}}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            {"spec": {"activeDeadlineSeconds": "1"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            {"spec": {"hostNetwork": "yes"}},
            "json: cannot unmarshal string into Go struct field PodSpec.spec.hostNetwork of type bool",
        ),
        (
            {"spec": {"containers": [{"name": {}}]}},
            "json: cannot unmarshal object into Go struct field Container.spec.containers.name of type string",
        ),
        ({"spec": []}, "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec"),
    ],
)
def test_wrong_types_are_refused_as_go_does(pod: dict[str, Any], text: str) -> None:
    with pytest.raises(Undecodable) as refused:
        typed(SCHEMAS, root("Pod"), pod)
    assert str(refused.value) == text


def test_typed_values_lose_nulls_and_gain_canonical_quantities() -> None:
    container = {"name": "c", "image": None, "resources": {"limits": {"cpu": 1.5}}}
    assert typed(SCHEMAS, root("Pod"), {"spec": {"containers": [container]}, "status": None}) == {
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "1500m"}}}]}
    }


@pytest.mark.parametrize(
    ("time", "text"),
    [
        ("2026-01-01T00:00:00Z", 'cannot parse "Z" as ".000000"'),
        ("yesterday", 'cannot parse "yesterday" as "2006"'),
    ],
)
def test_a_lease_needs_microseconds(time: str, text: str) -> None:
    with pytest.raises(Undecodable) as refused:
        typed(SCHEMAS, root("Lease", "coordination.k8s.io"), {"spec": {"renewTime": time}})
    assert text in str(refused.value)


def test_secrets_hold_base64() -> None:
    with pytest.raises(Undecodable, match="illegal base64 data at input byte 1"):
        typed(SCHEMAS, root("Secret"), {"data": {"a": "x!"}})


@pytest.mark.parametrize(
    ("body", "kind", "code", "text"),
    [
        (b'{"metadata":', "", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b"{}", "text/plain", 415, "accepted media types include: application/json, application/yaml"),
        (b"a: [", "application/yaml", 400, "error converting YAML to JSON"),
        (b"no", "application/vnd.kubernetes.protobuf", 400, "does not appear to be a protobuf message"),
    ],
)
def test_bodies_that_cannot_be_read(body: bytes, kind: str, code: int, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse(body, kind, "ConfigMap")
    assert refused.value.code == code
    assert text in refused.value.message


def test_fields_given_twice_are_known_by_their_path() -> None:
    value = parse(b'{"data":{"a":"1","a":"2"},"x":[{"b":1,"b":2}]}', "", "ConfigMap")
    assert duplicates(value) == ["data.a", "x[0].b"]


@pytest.mark.parametrize(
    ("resource", "body", "text"),
    [
        ("configmaps", {"kind": "Secret", "apiVersion": "v1"}, 'Secret in version "v1" cannot be handled as a ConfigMap'),
        ("configmaps", {"kind": "ConfigMap", "apiVersion": "v2"}, "does not match the expected API version (v1)"),
        ("jobsets.jobset.x-k8s.io", {"apiVersion": "jobset.x-k8s.io/v1alpha2"}, "Object 'Kind' is missing in"),
        ("configmaps", [], "json parse error: json: cannot unmarshal array"),
    ],
)
def test_objects_of_another_kind_are_refused(resource: str, body: Any, text: str) -> None:
    with pytest.raises(ApiError) as refused:
        identified(body, RESOURCES[resource], b"{}")
    assert text in refused.value.message


def test_strict_validation_refuses_and_warning_names_what_was_dropped() -> None:
    decoded = conform(SCHEMAS, RESOURCES["configmaps"], {"metadata": {}, "bogus": 1})
    assert settle(decoded, RESOURCES["configmaps"], "Warn") == ['unknown field "bogus"']
    assert settle(decoded, RESOURCES["configmaps"], "Ignore") == []
    with pytest.raises(ApiError, match=r'as a ConfigMap: strict decoding error: unknown field "bogus"$'):
        settle(decoded, RESOURCES["configmaps"], "Strict")
