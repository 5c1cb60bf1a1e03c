"""Sizes, rates and counts as options: read exactly, and refused beyond reason with the option and the range."""

from __future__ import annotations

import pytest

from atlas.errors import UsageError
from atlas.units import MOST_BYTES, MOST_COUNT, per_second, size_bytes, whole_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("80GB", 80 * 10**9),
        ("80GiB", 80 * 2**30),
        ("1.5TB", 1_500_000_000_000),
        ("24gb", 24 * 10**9),
        ("7B", 7),
        ("7 bytes", 7),
        (f"{2**80}B", 2**80),
    ],
)
def test_a_size_is_exact(text: str, expected: int) -> None:
    assert size_bytes(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "9" * 4999 + "B",
            f"--fit '{'9' * 30}…{'9' * 9}B (5,000 characters)' is too large, expected at most",
        ),
        (f"{2**80 + 1}B", f"expected at most {MOST_BYTES:,} bytes"),
        ("1e999GB", "is not a size"),
        ("-1GB", "is not a size"),
        ("0B", "not a whole, positive number"),
        ("24", "'24' has no unit"),
        ("24.5", "'24.5' has no unit"),
        ("24iB", "is not a size"),
        ("1." + "0" * 31 + "1GB", "not a whole, positive number"),  # 28 digits, Decimal's own, would round it
        ("0." + "0" * 5000 + "1GB", "is too large"),
    ],
    ids=lambda value: value[:12],
)
def test_a_size_beyond_reason(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=r"^--fit ") as caught:
        size_bytes(text, "--fit")
    assert words in caught.value.message
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("989T", 989e12),
        ("989TFLOPS", 989e12),
        ("3.35TB/s", 3.35e12),
        ("9.89e14", 9.89e14),
        ("3.35TiB/s", 3.35 * 2**40),
        ("1k", 1e3),
        (".5P", 5e14),
    ],
)
def test_a_rate(text: str, expected: float) -> None:
    assert per_second(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "1e400",
        "1e9999999",
        "1e-300",
        "1e-308",
        "0",
        "-1",
        "nan",
        "inf",
        "Infinity",
        "",
        "T",
        "1_0",
        "1e31",
        "9" * 5000,
        "989",
        "3.35",
        "989FLOPS",
        "989TB",
    ],
    ids=lambda value: value[:12],
)
def test_a_rate_beyond_reason(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--flops .* is not a rate") as caught:
        per_second(text, "--flops", "FLOPS")
    assert len(caught.value.message) < 300


def test_a_rate_of_bytes_is_no_rate_of_flops() -> None:
    assert per_second("3.35TB/s", "--bandwidth", "B") == 3.35e12
    with pytest.raises(UsageError, match="--bandwidth '989TFLOPS' is not a rate") as caught:
        per_second("989TFLOPS", "--bandwidth", "B")
    assert "3.35TB/s" in caught.value.hint


def test_a_count() -> None:
    assert [whole_number(text, "--batch") for text in (" 12 ", "-3", "0", str(2**40))] == [12, -3, 0, 2**40]


@pytest.mark.parametrize(
    ("text", "expected"), [("32k", 32_768), ("128K", 131_072), ("1M", 1_048_576), ("0k", 0)]
)
def test_a_count_with_a_unit_is_a_power_of_two(text: str, expected: int) -> None:
    """As context lengths are named: a model's 32k is 32,768 positions, 2¹⁵."""
    assert whole_number(text, "--context") == expected


@pytest.mark.parametrize(
    "text",
    [
        "1" + "0" * 4299,
        "9" * 5000,
        str(2**40 + 1),
        "-" + "9" * 30,
        "1.0",
        "１",
        "",
        "0x1",
        "k",
        "32kk",
        "32 k",
        "1.5k",
        "2G",
        "1048577M",
    ],
)
def test_a_count_beyond_reason(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--batch is ") as caught:
        whole_number(text, "--batch")
    assert f"{MOST_COUNT:,}" in caught.value.message
    assert len(caught.value.message) < 300
