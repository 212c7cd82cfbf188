"""Protobuf bodies, as the typed commands of kubectl send them."""

from __future__ import annotations

import pytest

from metaflow_devcluster.api.protobuf import MAGIC, decode


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return found + bytes((value,))


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return MAGIC + field(1, field(1, api_version.encode()) + field(2, kind.encode())) + field(2, raw)


def test_maps_strings_and_metadata() -> None:
    meta = field(1, b"cm") + field(11, field(1, b"app") + field(2, b"x")) + field(8, b"")
    body = envelope("v1", "ConfigMap", field(1, meta) + field(2, field(1, b"k") + field(2, b"v")))
    assert decode(body) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "cm", "labels": {"app": "x"}},
        "data": {"k": "v"},
    }


def test_bytes_become_base64() -> None:
    body = envelope("v1", "Secret", field(2, field(1, b"k") + field(2, b"\x00\xff")))
    assert decode(body)["data"] == {"k": "AP8="}


def test_pointers_keep_their_zero_and_plain_fields_lose_it() -> None:
    spec = field(7, 0) + field(1, 3) + field(6, field(2, field(2, field(1, b"c") + field(16, 0)) + field(11, 0)))
    body = envelope("batch/v1", "Job", field(2, spec))
    assert decode(body)["spec"] == {
        "backoffLimit": 0,
        "parallelism": 3,
        "template": {"spec": {"containers": [{"name": "c"}]}},
    }


def test_embedded_structs_are_inlined_and_negative_numbers_are_signed() -> None:
    volume = field(1, b"v") + field(2, field(2, b""))
    pod = field(2, field(1, volume) + field(5, 2**64 - 1))
    assert decode(envelope("v1", "Pod", pod))["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "activeDeadlineSeconds": -1,
    }


def test_times_quantities_and_ports() -> None:
    limits = field(1, b"cpu") + field(2, field(1, b"500m"))
    probe = field(1, field(2, field(2, field(1, 0) + field(2, 8080))))
    container = field(1, b"c") + field(8, field(1, limits)) + field(10, probe)
    meta = field(8, field(1, 1_700_000_000))
    decoded = decode(envelope("v1", "Pod", field(1, meta) + field(2, field(2, container))))
    assert decoded["metadata"] == {"creationTimestamp": "2023-11-14T22:13:20Z"}
    assert decoded["spec"]["containers"][0] == {
        "name": "c",
        "resources": {"limits": {"cpu": "500m"}},
        "livenessProbe": {"httpGet": {"port": 8080}},
    }


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{}", "does not appear to be a protobuf message"),
        (envelope("v1", "Nonsense", b""), 'no kind "Nonsense" is registered for version "v1"'),
        (envelope("v1", "Pod", b"\x0a\x7f"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\x0b"), "illegal wireType 3"),
    ],
)
def test_broken_bodies_are_refused(body: bytes, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        decode(body)
