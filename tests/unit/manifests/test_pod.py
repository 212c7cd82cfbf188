"""Pod templates: what is literal in a spec reaches the process, whatever the kubelet makes of dollar signs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.manifests.pod import escaped, pod_template
from metaflow_extensions.kubernetes_ext.manifests.volumes import claim_volume_name
from metaflow_extensions.kubernetes_ext.spec import labels, names
from metaflow_extensions.kubernetes_ext.spec.environment import EnvVar
from metaflow_extensions.kubernetes_ext.spec.launch import LaunchSpec
from tests.builders import make_container, make_gang, make_group, make_spec


def expanded(text: str, variables: Mapping[str, str], default: Callable[[bytes], bytes]) -> str:
    """What the kubelet makes of a value: k8s.io/kubernetes/third_party/forked/golang/expansion, byte by byte as there.

    `default` is what becomes of the character after a dollar sign that begins nothing: releases differ in it.
    """
    data, out, cursor = text.encode(), b"", 0
    while cursor < len(data):
        if data[cursor : cursor + 1] != b"$" or cursor + 1 == len(data):
            out, cursor = out + data[cursor : cursor + 1], cursor + 1
            continue
        following = data[cursor + 1 :]
        if following[:1] == b"$":
            out, cursor = out + b"$", cursor + 2
        elif following[:1] == b"(" and b")" in following:
            name, _, _ = following[1:].partition(b")")
            out += variables.get(name.decode(), f"$({name.decode()})").encode()
            cursor += len(name) + 3
        elif following[:1] == b"(":
            out, cursor = out + b"$(", cursor + 2
        else:
            out, cursor = out + b"$" + default(following[:1]), cursor + 2
    return out.decode()


def same_byte(byte: bytes) -> bytes:
    """Newer releases decode a whole character; byte by byte comes to the same."""
    return byte


def byte_as_character(byte: bytes) -> bytes:
    """Older releases: Go's string(input[0]) is the character of that number."""
    return chr(byte[0]).encode()


DOLLARS = st.text(st.sampled_from("$()AB é𝛼\n\"'`"), max_size=30)
UNICODE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=100)


@pytest.mark.parametrize("default", [same_byte, byte_as_character])
@given(text=DOLLARS | UNICODE)
@example("$(A)")
@example("$$(A)")
@example("$$")
@example("$é")
@example("$(A")
@example("5$")
def test_every_value_survives_the_kubelet(default: Callable[[bytes], bytes], text: str) -> None:
    variables = {"A": "expanded", "": "expanded", "B": "$(A)"}
    assert expanded(escaped(text), variables, default) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("echo $HOME ${A} 5$", "echo $HOME ${A} 5$", id="what is safe stays readable"),
        pytest.param("$(A)", "$$(A)", id="reference"),
        pytest.param("$$(A)", "$$$$(A)", id="escaped reference"),
        pytest.param("kill $$", "kill $$$$", id="two dollar signs stand for one"),
        pytest.param("$é", "$$é", id="not ASCII"),
    ],
)
def test_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def the_container(spec: LaunchSpec) -> dict[str, Any]:
    container: dict[str, Any] = pod_template(spec, spec.groups[0])["spec"]["containers"][0]
    return container


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), DOLLARS | UNICODE, max_size=5))
def test_every_environment_reaches_the_process(values: dict[str, str]) -> None:
    spec = make_spec(container=make_container(env=tuple(EnvVar(name, value) for name, value in values.items())))
    posted = the_container(spec).get("env", [])
    assert {item["name"]: expanded(item["value"], values, same_byte) for item in posted} == values


@given(st.lists(DOLLARS, min_size=1, max_size=3))
def test_every_command_reaches_the_process(words: list[str]) -> None:
    posted = the_container(make_spec(container=make_container(command=tuple(words))))["command"]
    assert [expanded(word, {"A": "expanded"}, same_byte) for word in posted] == words


def test_a_pod_gets_the_labels_of_its_workload_and_its_group_but_never_the_queues() -> None:
    group = make_group(labels={"team": "own"})
    queue = dict.fromkeys(labels.TOP_OBJECT_ONLY, "q")
    spec = make_spec(groups=(group,), labels={"team": "all", "flow": "F", **queue})
    assert pod_template(spec, group)["metadata"]["labels"] == {"team": "own", "flow": "F"}


def test_control_and_workers_have_the_same_pods_but_for_what_runs_in_them() -> None:
    spec = make_spec(groups=make_gang(4))
    control, worker = (pod_template(spec, group) for group in spec.groups)
    assert control == worker


def test_the_grace_period_of_nothing_is_still_said() -> None:
    spec = make_spec(grace_seconds=0)
    assert pod_template(spec, spec.groups[0])["spec"]["terminationGracePeriodSeconds"] == 0


@pytest.mark.parametrize("mounted", [True, False])
def test_whether_a_service_account_token_is_mounted_is_said_when_asked_for(mounted: bool) -> None:
    spec = make_spec(automount_service_account_token=mounted)
    assert pod_template(spec, spec.groups[0])["spec"]["automountServiceAccountToken"] is mounted


@given(st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,250}[a-z0-9])?", fullmatch=True) | st.just("dhsm"))
def test_a_claims_volume_has_a_valid_name_of_its_own(claim: str) -> None:
    volume = claim_volume_name(claim)
    assert names.is_dns_label(volume)
    assert volume not in ("dhsm", "tmpfs-ephemeral-volume")


def test_claims_that_look_alike_have_different_volumes() -> None:
    assert len({claim_volume_name(claim) for claim in ("a.b", "a-b", "a.b.c", "a..b")}) == 4
