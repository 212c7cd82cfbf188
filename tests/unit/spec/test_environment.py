"""Environment variables: one source each, only what a process can really get."""

from __future__ import annotations

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.environment import MAX_STRING_BYTES, EnvVar, fields, literals, merged


@pytest.mark.parametrize("name", ["A", "_a", "a.b-c", "MF_WORLD_SIZE", "-x", ".x"])
def test_names_of_variables(name: str) -> None:
    assert EnvVar(name, "1").name == name


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B", "Ä", ".", "..", "..a", "A\n", None])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(InvalidSpec, match="name of an environment variable"):
        EnvVar(name, "1")  # type: ignore[arg-type]


@pytest.mark.parametrize("sources", [{}, {"value": "1", "field_path": "metadata.name"}])
def test_a_variable_has_one_source(sources: dict[str, str]) -> None:
    with pytest.raises(InvalidSpec, match="one of them"):
        EnvVar("A", **sources)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("a\0b", "NUL", id="NUL"),
        pytest.param("\udc80", "surrogate", id="half of a surrogate pair"),
        pytest.param(5, "must be text", id="a number"),
        pytest.param("x" * MAX_STRING_BYTES, "Linux starts no process", id="too long with its name"),
    ],
)
def test_values_no_process_can_get(value: object, text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        EnvVar("A", value)  # type: ignore[arg-type]


def test_the_longest_value_linux_takes() -> None:
    assert EnvVar("A", "x" * (MAX_STRING_BYTES - 2)).value is not None


@pytest.mark.parametrize(
    "path",
    ["metadata.name", "metadata.uid", "spec.nodeName", "status.podIP", "status.hostIPs", "metadata.annotations['a.b/c-d']"],
)
def test_fields_of_the_pod(path: str) -> None:
    assert fields({"A": path}) == (EnvVar("A", field_path=path),)


@pytest.mark.parametrize(
    "path", ["metadata.nam", "spec.containers", "status.phase", "metadata.labels", "metadata.labels['']", ""]
)
def test_what_is_no_field_of_the_pod_is_refused(path: str) -> None:
    with pytest.raises(InvalidSpec, match="not a field of a pod"):
        EnvVar("A", field_path=path)


def test_none_leaves_a_variable_out_and_other_values_are_text() -> None:
    assert literals({"A": 1, "B": None, "C": "", "D": True}) == (EnvVar("A", "1"), EnvVar("C", ""), EnvVar("D", "True"))


def test_the_later_layer_wins_in_the_place_of_the_first() -> None:
    assert merged(literals({"A": 1, "B": 2}), fields({"A": "metadata.name"}), literals({"C": 3})) == (
        EnvVar("A", field_path="metadata.name"),
        EnvVar("B", "2"),
        EnvVar("C", "3"),
    )
