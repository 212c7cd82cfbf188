"""The environment of containers: values in, variables out."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from metaflow_devcluster.node.environment import (
    ConfigError,
    base_environment,
    container_environment,
    expand,
    field_value,
    resource_value,
)

Object = dict[str, Any]
POD: Object = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "labels": {"a/b": "1"}, "annotations": {"c": "2"}},
    "spec": {"nodeName": "n", "serviceAccountName": "default", "containers": []},
    "status": {"podIP": "127.77.1.1", "hostIP": "127.0.0.1"},
}
OBJECTS: dict[tuple[str, str], Object] = {
    ("configmaps", "c"): {"data": {"k": "v"}},
    ("secrets", "s"): {"data": {"k": base64.b64encode(b"hidden").decode()}},
}


def variables(container: Object, **base: str) -> dict[str, str]:
    return container_environment(POD, container, lambda *key: OBJECTS.get(key), base, lambda value: value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("$(A)", "1", id="known"),
        pytest.param("$(B)", "$(B)", id="unknown stays"),
        pytest.param("$$(A)", "$(A)", id="escaped"),
        pytest.param("x$(A)y$(A)", "x1y1", id="within"),
        pytest.param("$A ${A} $(A B)", "$A ${A} $(A B)", id="shell is left alone"),
    ],
)
def test_references(text: str, expected: str) -> None:
    assert expand(text, {"A": "1"}) == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        pytest.param({"value": "$(FIRST)!"}, "one!", id="earlier variable"),
        pytest.param({"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, "127.77.1.1", id="field"),
        pytest.param({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, "v", id="config map"),
        pytest.param({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, "hidden", id="secret"),
        pytest.param({}, "", id="nothing is empty"),
    ],
)
def test_values(entry: Object, expected: str) -> None:
    found = variables({"env": [{"name": "FIRST", "value": "one"}, {"name": "X", **entry}]})
    assert found["X"] == expected


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found', id="config map"),
        pytest.param({"secretKeyRef": {"name": "none", "key": "k"}}, 'secret "none" not found', id="secret"),
        pytest.param({"secretKeyRef": {"name": "s", "key": "x"}}, "couldn't find key x in Secret ns/s", id="key"),
    ],
)
def test_what_is_missing_is_named(source: Object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        variables({"env": [{"name": "X", "valueFrom": source}]})


def test_optional_keys_may_be_missing() -> None:
    ref = {"name": "none", "key": "k", "optional": True}
    assert "X" not in variables({"env": [{"name": "X", "valueFrom": {"configMapKeyRef": ref}}]})


def test_whole_maps_come_with_their_prefix_and_own_values_win() -> None:
    found = variables({"envFrom": [{"prefix": "P_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]})
    assert (found["P_k"], found["k"]) == ("v", "hidden")
    found = variables({"envFrom": [{"configMapRef": {"name": "c"}}], "env": [{"name": "k", "value": "own"}]})
    assert found["k"] == "own"


def test_nothing_of_the_servers_environment_gets_in() -> None:
    server = {"AWS_SECRET_ACCESS_KEY": "x", "KUBECONFIG": "y", "LANG": "C.UTF-8"}
    found = base_environment(bin_directory="/b", home="/h", hostname="host", server=server)
    assert set(found) - {"PYTHONUSERBASE"} == {"PATH", "HOME", "HOSTNAME", "LANG", "METAFLOW_KUBERNETES_SHARED_FILES"}
    assert found["PATH"].startswith("/b:")


def test_only_what_the_pod_says_is_rewritten() -> None:
    container = {"env": [{"name": "X", "value": "a"}]}
    found = container_environment(POD, container, lambda *_: None, {"PATH": "a"}, lambda value: value.upper())
    assert found == {"PATH": "a", "X": "A"}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "p"),
        ("metadata.labels['a/b']", "1"),
        ("metadata.annotations['c']", "2"),
        ("metadata.labels", 'a/b="1"'),
        ("spec.nodeName", "n"),
        ("spec.unheard", ""),
    ],
)
def test_fields(path: str, expected: str) -> None:
    assert field_value(POD, path) == expected


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        pytest.param({"resource": "limits.memory", "divisor": "1Mi"}, "128", id="unit"),
        pytest.param({"resource": "requests.cpu"}, "1", id="rounded up"),
        pytest.param({"resource": "requests.cpu", "divisor": "1m"}, "500", id="thousandths"),
    ],
)
def test_resources(ref: Object, expected: str) -> None:
    container = {"resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "500m"}}}
    assert resource_value(POD, container, ref) == expected
