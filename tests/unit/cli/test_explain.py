"""What is said of a field's origin is what changes the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.cli.explain import differences, explained
from metaflow_extensions.kubernetes_ext.decorators.site_policy import BUILT_IN, FORCED, STEP, Effective
from metaflow_extensions.kubernetes_ext.errors import InvalidSpec

ATTRIBUTES = {"image": "mine", "cpu": 2, "queue": "team", "logs": "all", "memory": 1}
ORIGINS = {"image": STEP, "cpu": "@resources", "queue": FORCED, "logs": STEP, "memory": BUILT_IN}
DEFAULTS = {"image": None, "cpu": 1, "queue": None, "logs": None, "memory": 1}


def build(others: Mapping[str, Any]) -> dict[str, Any]:
    found = {**ATTRIBUTES, **others}
    if not found["image"]:
        raise InvalidSpec("image is missing")
    labels = {"queue": found["queue"]} if found["queue"] else {}
    pods = [{"image": found["image"], "cpu": found["cpu"] * ranks} for ranks in (1, 3)]
    return {"metadata": {"labels": labels}, "spec": {"pods": pods, "memory": found["memory"]}}


def test_each_field_is_told_once_with_who_has_set_it() -> None:
    assert explained(build, Effective(ATTRIBUTES, ORIGINS), DEFAULTS) == [
        ("metadata.labels.queue", "queue", FORCED),
        ("spec.pods[].cpu", "cpu", "@resources"),
        ("spec.pods[].image", "image", STEP),
        ("", "logs", STEP),
    ]


@pytest.mark.parametrize(
    ("one", "other", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {}, ["a"]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[]"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a"]),
        ({}, {"a": {"b": 1}}, ["a"]),
        ({"a": [{"b": 1}]}, {"a": [{"b": None}]}, ["a[].b"]),
    ],
)
def test_where_two_manifests_differ(one: Any, other: Any, paths: list[str]) -> None:
    assert list(differences(one, other)) == paths
    assert list(differences(other, one)) == paths
