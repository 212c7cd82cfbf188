"""Names: made names are always valid, different things have different names, and what is refused is refused in words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec import names
from metaflow_extensions.kubernetes_ext.spec.names import TaskIds

ANY_TEXT = st.text(st.characters(), max_size=200)
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")  # as Kubernetes writes it
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@given(control=st.from_regex(r"[0-9a-z]{1,12}", fullmatch=True), size=st.integers(1, 40))
def test_every_rank_reads_its_own_task_id_back(control: str, size: int) -> None:
    ids = TaskIds(control, size).all()
    assert [TaskIds.parse(task_id) for task_id in ids] == [(control, rank) for rank in range(size)]
    assert len(set(ids)) == size


def test_task_ids_are_the_documented_ones() -> None:
    assert TaskIds("5", 3).all() == ("5", "5-worker-0", "5-worker-1")


@pytest.mark.parametrize(
    ("task_id", "expected"),
    [
        pytest.param("5", ("5", 0), id="control"),
        pytest.param("5-worker-0", ("5", 1), id="first worker"),
        pytest.param("t-9f-worker-12", ("t-9f", 13), id="id with dashes"),
        pytest.param("5-worker-01", ("5-worker-01", 0), id="leading zero is no worker's"),
        pytest.param("-worker-1", ("-worker-1", 0), id="worker of nobody"),
        pytest.param("5-worker-x", ("5-worker-x", 0), id="not a number"),
    ],
)
def test_task_ids_parse(task_id: str, expected: tuple[str, int]) -> None:
    assert TaskIds.parse(task_id) == expected


@pytest.mark.parametrize(("control", "size"), [("", 1), ("5-worker-0", 2), ("5", 0), ("5", -1)])
def test_task_ids_of_no_gang_are_refused(control: str, size: int) -> None:
    with pytest.raises(InvalidSpec):
        TaskIds(control, size)


@pytest.mark.parametrize("rank", [-1, 2])
def test_a_rank_outside_of_the_gang_has_no_task_id(rank: int) -> None:
    with pytest.raises(InvalidSpec, match="gang of 2"):
        TaskIds("5", 2).of_rank(rank)


@given(ANY_TEXT)
def test_a_label_value_is_always_valid(text: str) -> None:
    value = names.label_value(text)
    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63
    names.require_label("key", value, "test")


@given(ANY_TEXT)
def test_a_valid_label_value_stays_as_it_is(text: str) -> None:
    if LABEL_VALUE.fullmatch(text):
        assert names.label_value(text) == text


@given(ANY_TEXT, ANY_TEXT)
def test_different_texts_have_different_label_values(one: str, other: str) -> None:
    assert (names.label_value(one) == names.label_value(other)) == (one == other)


def test_long_texts_that_begin_alike_have_different_label_values() -> None:
    assert names.label_value("x" * 70) != names.label_value("x" * 71)


@given(flow=ANY_TEXT, step=ANY_TEXT, identity=st.lists(ANY_TEXT, max_size=4))
def test_a_workload_name_is_always_valid(flow: str, step: str, identity: list[str]) -> None:
    name = names.workload_name(flow, step, identity)
    assert DNS_1035.fullmatch(name)
    assert len(name) <= names.MAX_WORKLOAD_NAME
    names.require_workload_name(name, [("control", 1), ("worker", 999)])


def test_a_workload_name_is_readable_and_the_same_every_time() -> None:
    assert names.workload_name("MyDigitsFlow", "train_all", ("12", "3", "0")) == "mydigitsflow-train-all-8020415278"


@given(st.lists(ANY_TEXT, max_size=4), st.lists(ANY_TEXT, max_size=4))
def test_a_digest_tells_lists_of_parts_apart(one: list[str], other: list[str]) -> None:
    assert (names.digest(one) == names.digest(other)) == (one == other)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a", True), ("a-1", True), ("1a", True), ("a" * 63, True),
        ("", False), ("A", False), ("a_b", False), ("-a", False), ("a-", False), ("a" * 64, False), ("a.b", False), ("a\n", False),
        ("é", False),
    ],
)  # fmt: skip
def test_dns_label(name: str, valid: bool) -> None:
    assert names.is_dns_label(name) == valid
    if not valid:
        with pytest.raises(InvalidSpec, match=r"^group "):
            names.require_dns_label(name, "group")


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("a", True), ("a.b-c.d", True), ("a" * 100, True), ("0.0", True),
        ("", False), (".", False), ("a..b", False), ("a.", False), ("-a.b", False), ("a.B", False), ("a" * 254, False), ("a.b\n", False),
    ],
)  # fmt: skip
def test_dns_subdomain(name: str, valid: bool) -> None:
    if valid:
        names.require_dns_subdomain(name, "claim")
    else:
        with pytest.raises(InvalidSpec, match=r"^claim "):
            names.require_dns_subdomain(name, "claim")


@pytest.mark.parametrize(
    ("key", "valid"),
    [
        ("app", True), ("metaflow.org/run-id", True), ("a.b/C_d.e", True), ("x" * 63, True),
        ("", False), ("/a", False), ("a/", False), ("a/b/c", False), ("Upper/a", False), ("x" * 64, False), ("-a", False), ("a b", False),
    ],
)  # fmt: skip
def test_label_key(key: str, valid: bool) -> None:
    if valid:
        names.require_label_key(key, "label")
    else:
        with pytest.raises(InvalidSpec, match="label"):
            names.require_label_key(key, "label")


@pytest.mark.parametrize("value", ["-a", "a b", "ä", "x" * 64, "a\n", None, 5])
def test_a_bad_label_value_is_refused_with_its_key(value: object) -> None:
    with pytest.raises(InvalidSpec, match="team="):
        names.require_label("team", value, "workload")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "1a", "A", "a_b", "a" * 64, "a-"])
def test_a_workload_name_is_a_dns_1035_label(name: str) -> None:
    with pytest.raises(InvalidSpec, match="Workload name"):
        names.require_workload_name(name, [])


@pytest.mark.parametrize(
    ("name", "groups", "valid"),
    [
        pytest.param("a" * names.MAX_WORKLOAD_NAME, [("control", 1), ("worker", 1000)], True, id="1001 ranks"),
        pytest.param("a" * names.MAX_WORKLOAD_NAME, [("worker", 1001)], False, id="one digit too many"),
        pytest.param("a" * 46, [("control", 1)], False, id="control too long"),
    ],
)
def test_a_workload_name_leaves_room_for_its_pods(name: str, groups: list[tuple[str, int]], valid: bool) -> None:
    if valid:
        names.require_workload_name(name, groups)
    else:
        with pytest.raises(InvalidSpec, match="too long: the name of its pod"):
            names.require_workload_name(name, groups)
