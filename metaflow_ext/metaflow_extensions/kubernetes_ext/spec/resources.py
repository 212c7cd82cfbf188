"""Sizes in the forms users write them, with one meaning each.

A plain number of memory, disk, shared memory or tmpfs means megabytes as in Metaflow ("4096" -> "4096M"); a Kubernetes
quantity ("4Gi", "500m") is taken as it is. Source: Kubernetes, apimachinery resource.Quantity.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Mapping

from ..errors import InvalidSpec

_QUANTITY = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(e[0-9]+|E[0-9]+|m|k|[KMGTPE]i|[MGTPE])?\Z")
_SUFFIX = {
    "": Decimal(1), "m": Decimal("0.001"), "k": Decimal(10) ** 3,
    **{letter: Decimal(10) ** (3 * power) for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}  # fmt: skip


def amount(quantity: str) -> Decimal:
    """The number a Kubernetes quantity stands for, e.g. "500m" -> 0.5, "1Ki" -> 1024. InvalidSpec if it is none."""
    match = _QUANTITY.match(quantity)
    if not match:
        raise InvalidSpec(f"{quantity!r} is not a Kubernetes quantity such as 2, 0.5, 500m, 4096M or 4Gi.")
    number, suffix = match.group(1), match.group(2) or ""
    if suffix[:1] in ("e", "E") and suffix[1:].isdigit():
        return Decimal(number) * Decimal(10) ** int(suffix[1:])
    return Decimal(number) * _SUFFIX[suffix]


def _text(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal)):
        raise InvalidSpec(f"{what} is a number or a quantity such as 4Gi, not {value!r}.")
    text = str(value).strip()
    if isinstance(value, (float, Decimal)) or re.fullmatch(r"[0-9]+\.[0-9]*", text):
        try:
            number = Decimal(text)
        except ArithmeticError:
            raise InvalidSpec(f"{what} is a number or a quantity such as 4Gi, not {value!r}.") from None
        if not number.is_finite():
            raise InvalidSpec(f"{what} is a number or a quantity such as 4Gi, not {value!r}.")
        text = format(number.normalize(), "f")
    return text


def count(value: object, what: str) -> str:
    """A quantity of cpu: 1, "1", 1.0, 0.5 or "500m". Positive."""
    text = _text(value, what)
    try:
        positive = amount(text) > 0
    except InvalidSpec as error:
        raise InvalidSpec(f"{what}: {error}") from None
    if not positive:
        raise InvalidSpec(f"{what} must be greater than 0, not {value!r}.")
    return text


def megabytes(value: object, what: str, unit: str = "M") -> str:
    """A quantity of bytes; a plain number means megabytes (`unit` "M"; "Mi" where upstream says MiB). Positive."""
    text = count(value, what)
    return f"{text}{unit}" if re.fullmatch(r"[0-9]*\.?[0-9]+", text) else text


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one container asks for. Values are Kubernetes quantities; `limits_equal_requests` is QoS Guaranteed."""

    cpu: str | None = None
    memory: str | None = None
    disk: str | None = None  # ephemeral-storage
    gpu: int | None = None
    gpu_vendor: str = "nvidia"
    extended: Mapping[str, str] = field(default_factory=dict)
    limits_equal_requests: bool = False

    def __post_init__(self) -> None:
        for what, quantity in (("cpu", self.cpu), ("memory", self.memory), ("disk", self.disk)):
            if quantity is not None and amount(quantity) <= 0:
                raise InvalidSpec(f"{what} must be greater than 0, not {quantity}.")
        if self.gpu is not None and self.gpu < 0:
            raise InvalidSpec(f"gpu must not be negative, not {self.gpu}.")
        for name, quantity in self.extended.items():
            try:
                amount(str(quantity))
            except InvalidSpec as error:
                raise InvalidSpec(f"extended_resources[{name!r}]: {error}") from None
