"""Specs: what can't run is refused when it is made, naming what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.command import bash
from metaflow_extensions.kubernetes_ext.spec.environment import EnvVar
from tests.builders import make_container, make_gang, make_group, make_spec


@pytest.mark.parametrize("size", [1, 2, 16])
def test_the_world_size_counts_all_ranks(size: int) -> None:
    assert make_spec(size).world_size == size


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"name": "Train"}, "container name 'Train'", id="name"),
        pytest.param({"image": ""}, "image is the name", id="no image"),
        pytest.param({"image": " python"}, "without blanks", id="blank before the image"),
        pytest.param({"image": True}, "not True", id="an image that is no text"),
        pytest.param({"command": ()}, "no command", id="no command"),
        pytest.param({"command": "ls"}, "sequence of words", id="command as a string"),
        pytest.param({"command": ("a", "b\0")}, "NUL", id="NUL in the command"),
        pytest.param({"command": ("bash", "-c", "x" * 200_000)}, "Linux starts no process", id="script too long for a process"),
        pytest.param({"env": (EnvVar("A", "1"), EnvVar("A", "2"))}, "two environment variables A", id="variable twice"),
        pytest.param({"env_from_secrets": ("My_Secret",)}, "secret 'My_Secret'", id="secret"),
        pytest.param({"image_pull_policy": "always"}, "image_pull_policy", id="pull policy"),
        pytest.param({"ports": (0,)}, "port is a number", id="port 0"),
        pytest.param({"ports": (65536,)}, "port is a number", id="port too high"),
        pytest.param({"ports": ("80",)}, "port is a number", id="port as text"),
        pytest.param({"ports": (True,)}, "port is a number", id="port as truth"),
    ],
)
def test_containers_refuse(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        make_container(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"name": "Control"}, "group name", id="name"),
        pytest.param({"replicas": 0}, "0 replicas", id="none"),
        pytest.param({"replicas": -1}, "-1 replicas", id="negative"),
        pytest.param({"replicas": 2.0}, "2.0 replicas", id="a float"),
        pytest.param({"replicas": True}, "True replicas", id="a truth value"),
        pytest.param({"labels": {"a": "b c"}}, "group control: label a=", id="label"),
        pytest.param({"annotations": {"a b": ""}}, "group control: annotation", id="annotation key"),
    ],
)
def test_groups_refuse(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        make_group(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param({"name": "Digits"}, "Workload name", id="name"),
        pytest.param({"name": "d" * 60}, "too long", id="name too long for its pods"),
        pytest.param({"namespace": "a.b"}, "namespace", id="namespace"),
        pytest.param({"service_account": "A"}, "service account", id="service account"),
        pytest.param({"image_pull_secrets": ("A",)}, "image pull secret", id="pull secret"),
        pytest.param({"deadline_seconds": 0}, "deadline", id="deadline of 0"),
        pytest.param({"deadline_seconds": 1.5}, "deadline", id="deadline with a fraction"),
        pytest.param({"deadline_seconds": 2**31}, "deadline", id="deadline over 32 bits"),
        pytest.param({"ttl_seconds": -1}, "time to live", id="negative time to live"),
        pytest.param({"grace_seconds": -1}, "grace period", id="negative grace period"),
        pytest.param({"labels": {"a": None}}, "workload: label a=", id="label without a value"),
        pytest.param({"annotations": {"a": 5}}, "annotation a must be text", id="annotation as a number"),
        pytest.param({"annotations": {"a": "\udc80"}}, "surrogate", id="annotation that is no Unicode"),
        pytest.param({"annotations": {"a": "x" * 300_000}}, "Kubernetes takes 262144", id="annotations too long"),
        pytest.param({"groups": (make_group("a"), make_group("a"))}, "two groups", id="group twice"),
    ],
)
def test_workloads_refuse(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidSpec, match=text):
        make_spec(**fields)


def test_a_workload_without_groups_is_refused() -> None:
    spec = make_spec()
    with pytest.raises(InvalidSpec, match="no groups"):
        type(spec)(name=spec.name, namespace=spec.namespace, groups=())


def test_the_smallest_times_are_allowed() -> None:
    spec = make_spec(deadline_seconds=1, ttl_seconds=0, grace_seconds=0)
    assert (spec.deadline_seconds, spec.ttl_seconds, spec.grace_seconds) == (1, 0, 0)


def test_a_gang_of_one_has_no_workers() -> None:
    assert [(group.name, group.replicas) for group in make_gang(1)] == [("control", 1)]


def test_a_script_is_one_word_of_bash() -> None:
    assert bash("echo 'it' $HOME\n") == ("bash", "-c", "echo 'it' $HOME\n")
