"""Kubernetes quantities (`500m`, `1.5Gi`) as numbers and in the canonical text the server answers with."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal

PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
REFUSAL = f"quantities must match the regular expression '{PATTERN}'"
_PARTS = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def _split(text: str) -> tuple[Decimal, str]:
    match = _PARTS.fullmatch(text)
    if not match:
        raise ValueError(REFUSAL)
    return Decimal(match[1]), match[2] or ""


def quantity(value: str | int | float) -> Decimal:
    """The number that a quantity stands for; ValueError with the server's text when it is none."""
    number, suffix = _split(str(value))
    if suffix in _BINARY:
        return number * Decimal(1024) ** _BINARY[suffix]
    if suffix in _DECIMAL:
        return number.scaleb(_DECIMAL[suffix])
    return number.scaleb(int(suffix[1:]))


def canonical(value: str | int | float) -> str:
    """No fraction and the largest unit that needs none, in the family of units it was written in."""
    text = str(value)
    number, suffix = _split(text), _split(text)[1]
    amount = quantity(text)
    if suffix in _BINARY:
        for unit, power in reversed(_BINARY.items()):
            scaled = amount / Decimal(1024) ** power
            if scaled == scaled.to_integral_value() and scaled != 0:
                return f"{int(scaled)}{unit}"
        if amount == amount.to_integral_value():
            return str(int(amount))
    if suffix[:1] in ("e", "E") and suffix not in _DECIMAL:
        return text
    return _decimal_text(amount) if number else text


def decimal_text(amount: Decimal) -> str:
    """A number in the decimal family, as the server prints sums it has computed."""
    return _decimal_text(amount)


def _decimal_text(amount: Decimal) -> str:
    if amount == 0:
        return "0"
    for unit, exponent in reversed(_DECIMAL.items()):
        scaled = amount.scaleb(-exponent)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{unit}"
    return f"{int(amount.scaleb(9).to_integral_value(ROUND_CEILING))}n"
