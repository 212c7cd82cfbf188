"""Sizes in the forms users write them, with one meaning each. Runs on Python 3.8: tasks import it.

A plain number of memory, disk, shared memory or tmpfs means megabytes as in Metaflow (4096, "4096", 4096.0 and "4e3" are
plain numbers: "4096" -> "4096M"); a Kubernetes quantity with a suffix ("4Gi", "500m") is taken as it is.
Source: Kubernetes, apimachinery resource.Quantity.
"""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real

from ..errors import InvalidSpec

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\Z")
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([eE][+-]?[0-9]{1,3}|[numk]|[KMGTPE]i|[MGTPE])?\Z")
_SUFFIX = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10) ** 3,
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}  # fmt: skip
_LARGEST = Decimal(2**63 - 1)  # Kubernetes caps quantities here without a word


def amount(quantity: str) -> Decimal:
    """The number a Kubernetes quantity stands for, e.g. "500m" -> 0.5, "1Ki" -> 1024. InvalidSpec if it is none."""
    match = _QUANTITY.match(quantity) if isinstance(quantity, str) else None
    if not match:
        raise InvalidSpec(f"{quantity!r} is not a Kubernetes quantity such as 2, 0.5, 500m, 4096M or 4Gi.")
    number, suffix = match.group(1), match.group(2) or ""
    value = (
        Decimal(number + suffix) if suffix[:1] in ("e", "E") and suffix not in _SUFFIX else Decimal(number) * _SUFFIX[suffix]
    )
    if abs(value) > _LARGEST:
        raise InvalidSpec(f"{quantity!r} is larger than any quantity of Kubernetes.")
    return value


def _decimal(value: object, what: str, example: str) -> Decimal | str:
    """The number, or the text where it isn't a plain number."""
    text = str(value).strip()
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, str)):
        raise InvalidSpec(f"{what} is {example}, not {value!r}.")
    if _NUMBER.match(text):
        return Decimal(text)
    if not isinstance(value, str):  # nan, inf, fractions
        raise InvalidSpec(f"{what} is {example}, not {value!r}.")
    return text


def _plain(number: Decimal) -> str:
    return format(number, "f").rstrip("0").rstrip(".") if number % 1 else str(int(number))


def _positive(value: object, what: str, unit: str) -> str:
    parsed = _decimal(value, what, "a number or a quantity such as 4Gi" if unit else "a number or a quantity such as 500m")
    try:
        if isinstance(parsed, Decimal):
            text = f"{_plain(parsed)}{unit}" if abs(parsed) <= _LARGEST else str(value)
        else:
            text = parsed
        number = amount(text)
    except InvalidSpec as error:
        raise InvalidSpec(f"{what}: {error}") from None
    if number <= 0:
        raise InvalidSpec(f"{what} must be greater than 0, not {value!r}.")
    return text


def count(value: object, what: str) -> str:
    """A quantity of cpu: 1, "1", 1.0, 0.5 or "500m". Positive. InvalidSpec names `what`."""
    return _positive(value, what, "")


def megabytes(value: object, what: str, unit: str = "M") -> str:
    """A quantity of bytes; a plain number means megabytes (`unit` "M"; "Mi" where upstream says MiB). At least one byte."""
    text = _positive(value, what, unit)
    require_bytes(text, what)
    return text


def whole(value: object, what: str, least: int = 0) -> int:
    """A whole number in the forms users and environment variables write it: 2, "2", 2.0. InvalidSpec below `least`."""
    parsed = _decimal(value, what, "a whole number")
    if not isinstance(parsed, Decimal) or abs(parsed) > _LARGEST or parsed % 1:
        raise InvalidSpec(f"{what} is a whole number, not {value!r}.")
    if parsed < least:
        raise InvalidSpec(f"{what} must be at least {least}, not {value!r}.")
    return int(parsed)


def require_bytes(quantity: str, what: str) -> None:
    """InvalidSpec where a quantity of bytes is less than one, which "500m" is."""
    if amount(quantity) < 1:
        raise InvalidSpec(f"{what}={quantity!r} is less than one byte ('m' means thousandths); M is megabytes, Mi mebibytes.")
