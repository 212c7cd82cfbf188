"""Rules for dictionaries in the shape of a Kubernetes object: which fields there are, and what each has to be.

A rule takes a value and says what it has to be, "" where that is what it is. Deeper faults are raised where they are found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InvalidSpec
from . import names

Rule = Callable[[Any, str], str]  # the value, and where it stands
_MOST = 2**31 - 1


def require(value: Any, fields: Mapping[str, Rule], where: str, needs: tuple[str, ...] = ()) -> None:
    """InvalidSpec unless `value` is a mapping of these fields, with those in `needs`."""
    if not isinstance(value, Mapping):
        raise InvalidSpec(f"{where} is a dictionary, not {value!r}.")
    for name, found in value.items():
        if name not in fields:
            raise InvalidSpec(f"{where} has no field {name!r}; it has {', '.join(fields)}.")
        if wanted := fields[name](found, f"{where}: {name}"):
            raise InvalidSpec(f"{where}: {name} is {wanted}, not {found!r}.")
    missing = [name for name in needs if name not in value]
    if missing:
        raise InvalidSpec(f"{where} is a dictionary with {missing[0]!r}, not {dict(value)!r}.")


def flag(value: Any, where: str) -> str:
    return "" if isinstance(value, bool) else "True or False"


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(least: int, most: int = _MOST) -> Rule:
    return lambda value, where: "" if is_whole(value) and least <= value <= most else f"a whole number from {least} to {most}"


def text(value: Any, where: str) -> str:
    return "" if isinstance(value, str) else "a text"


def filled(value: Any, where: str) -> str:
    return "" if isinstance(value, str) and value else "a text, not empty"


def texts(value: Any, where: str) -> str:
    is_one = isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value)
    return "" if is_one else "a list of texts"


def one_of(*choices: str) -> Rule:
    return lambda value, where: "" if value in choices else "one of " + ", ".join(choices)


def label_key(value: Any, where: str) -> str:
    if not isinstance(value, str):
        return "a text"
    names.require_label_key(value, where)
    return ""


def label_pairs(value: Any, where: str) -> str:
    if not isinstance(value, Mapping):
        return "a dictionary"
    for key, found in value.items():
        names.require_label(key, found, where)
    return ""


def struct(fields: Mapping[str, Rule], *needs: str) -> Rule:
    def rule(value: Any, where: str) -> str:
        require(value, fields, where, needs)
        return ""

    return rule


def many(item: Rule, least: int = 0) -> Rule:
    """A list of such items, at least `least`."""

    def rule(value: Any, where: str) -> str:
        if not isinstance(value, (list, tuple)) or len(value) < least:
            return f"a list of at least {least}" if least else "a list"
        for number, found in enumerate(value):
            if wanted := item(found, f"{where}[{number}]"):
                raise InvalidSpec(f"{where}[{number}] is {wanted}, not {found!r}.")
        return ""

    return rule
