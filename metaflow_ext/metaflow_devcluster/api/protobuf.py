"""Decoding of the protobuf bodies that kubectl's typed commands send (1.32 and later do not fall back to JSON).

The envelope is `k8s\\0` and a runtime.Unknown; field numbers are in `data/messages.json`, made from the
published .proto files. Only decoding: answers are JSON, which every client accepts.
"""

from __future__ import annotations

import base64
import datetime
import functools
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MAGIC = b"k8s\x00"
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_SIGNED_BITS = 64


@functools.cache
def _messages() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads((Path(__file__).parent / "data" / "messages.json").read_text())
    return found


def decode(body: bytes) -> dict[str, Any]:
    """The object in a `k8s\\0` envelope, as its JSON form; ValueError when it is not one."""
    if not body.startswith(MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            parts = {inner: text for inner, text in _fields(value) if isinstance(text, bytes)}
            api_version, kind = parts.get(1, b"").decode(), parts.get(2, b"").decode()
        elif number == 2 and isinstance(value, bytes):
            raw = value
    name = _message_name(api_version, kind)
    if name is None:
        raise ValueError(f'no kind "{kind}" is registered for version "{api_version}"')
    return {"kind": kind, "apiVersion": api_version, **_message(name, raw)}


def _message_name(api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    package = group.split(".")[0] or "core"
    candidates = (f"k8s.io.api.{package}.{version}.{kind}", f"{_META}{kind}")
    return next((name for name in candidates if name in _messages()), None)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield number, value
        elif wire == 2:
            size, position = _varint(data, position)
            if position + size > len(data):
                raise ValueError("unexpected EOF")
            yield number, data[position : position + size]
            position += size
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            yield number, data[position : position + size]
            position += size
        else:
            raise ValueError(f"proto: illegal wireType {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > _SIGNED_BITS:
            raise ValueError("unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _message(name: str, data: bytes) -> dict[str, Any]:
    described = _messages()[name]
    found: dict[str, Any] = {}
    for number, value in _fields(data):
        if str(number) not in described:
            continue
        key, kind, label = described[str(number)]
        if label == "many":
            found.setdefault(key, []).append(_value(kind, value))
        elif label == "map":
            entry = dict(_fields(value)) if isinstance(value, bytes) else {}
            found.setdefault(key, {})[_text(entry.get(1, b""))] = _value(kind, entry.get(2, b""))
        elif label == "inline":
            found.update(_value(kind, value))
        else:
            decoded = _value(kind, value)
            if decoded or (label == "pointer" and decoded is not None):
                found[key] = decoded
    return found


def _value(kind: str, value: int | bytes) -> Any:
    if kind == "string":
        return _text(value)
    if kind == "bool":
        return bool(value)
    if kind in ("int32", "int64") and isinstance(value, int):
        return value - (1 << _SIGNED_BITS) if value >> (_SIGNED_BITS - 1) else value
    if kind == "double" and isinstance(value, bytes):
        return struct.unpack("<d", value)[0]
    raw = value if isinstance(value, bytes) else b""
    if kind == "bytes":
        return base64.b64encode(raw).decode()
    return _special(kind, raw)


def _special(kind: str, raw: bytes) -> Any:
    short = kind.rpartition(".")[2]
    if short in ("Time", "MicroTime") and kind.startswith(_META):
        parts = dict(_fields(raw))
        if not parts.get(1):
            return None
        moment = datetime.datetime.fromtimestamp(int(parts[1]), datetime.timezone.utc)
        fraction = f".{int(parts.get(2, 0)) // 1000:06d}" if short == "MicroTime" else ""
        return f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}Z"
    if short == "Quantity":
        return _text(dict(_fields(raw)).get(1, b"0"))
    if short == "IntOrString":
        parts = dict(_fields(raw))
        return _text(parts.get(3, b"")) if parts.get(1) else _value("int32", parts.get(2, 0))
    if short in ("FieldsV1", "RawExtension"):
        text = _text(dict(_fields(raw)).get(1, b""))
        return json.loads(text) if text else None
    if set(_messages()[kind]) == {"1"} and _messages()[kind]["1"][0] == "items":
        return _message(kind, raw).get("items", [])
    return _message(kind, raw)


def _text(value: int | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
