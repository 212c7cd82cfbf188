"""A manifest as text for people, in the order Kubernetes' own documents have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_FIRST = ("apiVersion", "kind", "metadata", "name", "namespace")
_LAST = ("template", "replicatedJobs", "containers", "volumes")


class _Dumper(yaml.SafeDumper):
    """No anchors for values that occur twice, lists indented below their key, texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """YAML that reads back as exactly `manifest` and can be given to `kubectl create -f -`. The order is stable."""
    return yaml.dump(_ordered(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _ordered(value[key]) for key in sorted(value, key=_place)}
    if isinstance(value, (list, tuple)):
        return [_ordered(item) for item in value]
    return value


def _place(key: str) -> tuple[int, str]:
    if key in _FIRST:
        return _FIRST.index(key), ""
    if key in _LAST:
        return len(_FIRST) + 1 + _LAST.index(key), ""
    return len(_FIRST), key
