"""A manifest as text for people, in the order Kubernetes' own documents have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

_FIRST = ("apiVersion", "kind", "metadata", "name", "namespace")
_LAST = ("template", "replicatedJobs", "containers", "volumes")


# Strings that PyYAML reads back as such but Kubernetes' YAML reads as numbers or truth values: to be quoted.
_AMBIGUOUS = re.compile(r"[-+]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F_]+|[yYnN]")

_OTHER_LINE_BREAKS = re.compile("[\\r\\x85\\u2028\\u2029]")  # unescaped, these read back as other ones


class _Dumper(yaml.SafeDumper):
    """No anchors for values that occur twice, lists indented below their key, texts of several lines as blocks."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if _OTHER_LINE_BREAKS.search(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    elif _AMBIGUOUS.fullmatch(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def as_yaml(manifest: Mapping[str, Any]) -> str:
    """YAML that reads back as exactly `manifest` and can be given to `kubectl create -f -`. The order is stable."""
    text: str = yaml.dump(_ordered(manifest), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


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
