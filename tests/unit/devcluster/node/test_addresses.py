"""Names of pods and their addresses."""

from __future__ import annotations

import pytest

from metaflow_devcluster.node.addresses import AddressBook, HostName, parse_host_name

CONTROL = HostName("g-control-0-0", "g", "ns")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g-control-0-0.g", CONTROL),
        ("g-control-0-0.g.ns", CONTROL),
        ("g-control-0-0.g.other.svc", HostName("g-control-0-0", "g", "other")),
        ("g-control-0-0.g.ns.svc.cluster.local", CONTROL),
        ("g-control-0-0.g.ns.svc.cluster.local.", CONTROL),
        ("host", None),
        ("a.b.c.d", None),
        ("http://g-control-0-0.g:80/", HostName("http://g-control-0-0", "g:80/", "ns")),
        (".", None),
    ],
)
def test_host_names(text: str, expected: HostName | None) -> None:
    assert parse_host_name(text, "ns") == expected


def test_a_name_has_its_address_before_its_pod_exists() -> None:
    book = AddressBook(is_shared=False)
    address = book.of_name(CONTROL)
    assert address == "127.77.1.1"
    assert book.of_pod("uid", CONTROL) == address


def test_every_pod_has_its_own_address_also_without_a_name() -> None:
    book = AddressBook(is_shared=False)
    addresses = [book.of_pod(str(number), None) for number in range(600)]
    assert len(set(addresses)) == 600
    assert addresses[0] == book.of_pod("0", None)


def test_of_two_pods_with_one_name_the_newer_gets_it() -> None:
    book = AddressBook(is_shared=False)
    first = book.of_pod("first", CONTROL)
    second = book.of_pod("second", CONTROL)
    assert first != second
    assert book.of_name(CONTROL) == second


def test_a_restarted_pod_keeps_the_address_of_its_name() -> None:
    book = AddressBook(is_shared=False)
    first = book.of_pod("first", CONTROL)
    book.release("first")
    assert book.of_pod("second", CONTROL) == first


def test_where_only_one_address_answers_all_share_it() -> None:
    book = AddressBook(is_shared=True)
    assert {book.of_pod("a", CONTROL), book.of_pod("b", None)} == {"127.0.0.1"}


def test_hosts_lists_all_forms_of_a_name() -> None:
    book = AddressBook(is_shared=False)
    book.of_name(CONTROL)
    line = "127.77.1.1 g-control-0-0.g.ns.svc.cluster.local g-control-0-0.g.ns.svc g-control-0-0.g.ns g-control-0-0.g g-control-0-0"
    assert line in book.hosts("ns").split("\n")
    assert "127.77" not in book.hosts("other")
