"""YAML for people: reads back as the same, in an order that doesn't depend on how the manifest was made."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.manifests.render import as_yaml

TEXT = st.text(st.characters(codec="utf-8"), max_size=40)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(TEXT, VALUES, max_size=5))
def test_every_manifest_reads_back_as_itself(manifest: dict[str, object]) -> None:
    assert yaml.safe_load(as_yaml(manifest)) == manifest


def test_the_order_is_the_documents_own_whatever_the_order_of_making() -> None:
    one = {"spec": {"b": 1, "a": 2, "containers": [], "name": "x"}, "metadata": {}, "kind": "K", "apiVersion": "v1"}
    other = {"apiVersion": "v1", "kind": "K", "metadata": {}, "spec": {"containers": [], "name": "x", "a": 2, "b": 1}}
    assert as_yaml(one) == as_yaml(other)
    assert as_yaml(one) == "apiVersion: v1\nkind: K\nmetadata: {}\nspec:\n  name: x\n  a: 2\n  b: 1\n  containers: []\n"


def test_texts_of_several_lines_are_blocks() -> None:
    assert as_yaml({"a": "one\ntwo\n"}) == "a: |\n  one\n  two\n"


def test_what_occurs_twice_is_written_twice() -> None:
    twice = {"x": "y"}
    assert as_yaml({"a": twice, "b": twice}) == "a:\n  x: 'y'\nb:\n  x: 'y'\n"


@pytest.mark.parametrize(
    "text", ["1e3", "y", "N", "0x1F", "0o17", "0b1", "1_000", "12", "1.", ".5", "-1", "+1e-3", "true", "no", "null", ""]
)
def test_texts_that_kubectl_would_take_for_something_else_are_quoted(text: str) -> None:
    assert as_yaml({"a": text}) == f"a: '{text}'\n"
