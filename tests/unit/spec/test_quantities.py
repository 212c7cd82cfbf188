"""Sizes: every form users write has one meaning, everything else is refused in words that name the attribute."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaflow_extensions.kubernetes_ext.errors import InvalidSpec
from metaflow_extensions.kubernetes_ext.spec.quantities import amount, count, megabytes, whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4096, "4096M"), ("4096", "4096M"), (4096.0, "4096M"), ("4096.0", "4096M"), (" 4096 ", "4096M"), (Decimal("4096"), "4096M"),
        ("4Gi", "4Gi"), ("4G", "4G"), ("1.5Gi", "1.5Gi"), (0.5, "0.5M"), ("0.5", "0.5M"), (".5", "0.5M"), ("1.50", "1.5M"),
        (1e3, "1000M"), ("1e3", "1000M"), ("1E3", "1000M"), ("1E", "1E"), ("100", "100M"), ("+7", "7M"), (1e-3, "0.001M"),
    ],
)  # fmt: skip
def test_megabytes(value: object, expected: str) -> None:
    assert megabytes(value, "memory") == expected


def test_megabytes_are_mebibytes_where_upstream_says_so() -> None:
    assert (megabytes(64, "shared_memory", "Mi"), megabytes("1G", "shared_memory", "Mi")) == ("64Mi", "1G")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"), ("1", "1"), (1.0, "1"), ("1.0", "1"), (0.5, "0.5"), ("0.5", "0.5"), ("500m", "500m"), (100, "100"), ("2k", "2k"),
        (1e3, "1000"), ("1e3", "1000"), (0.1, "0.1"),
    ],
)  # fmt: skip
def test_count(value: object, expected: str) -> None:
    assert count(value, "cpu") == expected


@pytest.mark.parametrize("convert", [count, megabytes])
@pytest.mark.parametrize("value", [-1, "-1", 0, "0", 0.0, "-4Gi", "0Gi"])
def test_sizes_are_positive(convert: object, value: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^disk must be greater than 0, not "):
        convert(value, "disk")  # type: ignore[operator]


@pytest.mark.parametrize("convert", [count, megabytes])
@pytest.mark.parametrize(
    "value",
    ["abc", "", True, False, None, float("nan"), float("inf"), "nan", "inf", "4 Gi", "4gi", "4GB", "1/2", Fraction(1, 3), [], {}, "٤",
     "1e999", 1e300, "9E19", b"4"],
)  # fmt: skip
def test_what_is_no_size_is_refused(convert: object, value: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^disk"):
        convert(value, "disk")  # type: ignore[operator]


@pytest.mark.parametrize("value", ["500m", 1e-9, "1u"])
def test_memory_of_less_than_a_byte_is_a_slip(value: object) -> None:
    with pytest.raises(InvalidSpec, match="less than one byte"):
        megabytes(value, "memory")


@given(st.floats(min_value=0.001, max_value=1e12))
def test_a_float_keeps_its_amount(value: float) -> None:
    assert amount(count(value, "cpu")) == Decimal(str(value))
    assert amount(megabytes(value, "memory")) == Decimal(str(value)) * 10**6


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("1", 1), ("500m", Decimal("0.5")), ("1Ki", 1024), ("1.5Gi", 3 * 2**29), ("1k", 1000), ("2M", 2 * 10**6), ("1e3", 1000),
        ("1E3", 1000), ("1E", 10**18), ("1Ei", 2**60), ("-1", -1), ("0", 0), ("100n", Decimal("1e-7")), (".5", Decimal("0.5")), ("5.", 5),
    ],
)  # fmt: skip
def test_amount(quantity: str, expected: object) -> None:
    assert amount(quantity) == expected


@pytest.mark.parametrize("quantity", ["", "Gi", "1GiB", "1K", "1 ", "e3", "1e", "--1", "1_000", "16Ei", None, 5])
def test_what_is_no_quantity_has_no_amount(quantity: object) -> None:
    with pytest.raises(InvalidSpec):
        amount(quantity)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2, "2", 2.0, "2.0", Decimal(2), "2e0"])
def test_whole_numbers(value: object) -> None:
    assert whole(value, "gpu") == 2


@pytest.mark.parametrize("value", [2.5, "2.5", "two", None, True, "", float("nan"), float("inf"), "2Gi", [2], "1e500"])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^gpu is a whole number, not "):
        whole(value, "gpu")


def test_whole_numbers_have_a_least_one() -> None:
    with pytest.raises(InvalidSpec, match=r"^num_parallel must be at least 1, not 0"):
        whole(0, "num_parallel", 1)
