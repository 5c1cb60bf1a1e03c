"""Bit patterns against the definition of each format, written out here as arithmetic on sign, exponent and fraction."""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlas.dtypes import BITS
from atlas.verification.deep.patterns import PATTERNS
from atlas.verification.deep.values import Values, look


class Format(NamedTuple):
    """Bits of exponent and of fraction, and which of the patterns with the highest exponent are no finite numbers."""

    exponent: int
    fraction: int
    kind: str


FORMATS = {
    "BF16": Format(8, 7, "ieee"),
    "F16": Format(5, 10, "ieee"),
    "F32": Format(8, 23, "ieee"),
    "F64": Format(11, 52, "ieee"),
    "F8_E5M2": Format(5, 2, "ieee"),
    "F8_E4M3": Format(4, 3, "all ones"),
    "F8_E8M0": Format(8, 0, "e8m0"),
    "F8_E4M3FNUZ": Format(4, 3, "negative zero"),
    "F8_E5M2FNUZ": Format(5, 2, "negative zero"),
}
EIGHT_AND_SIXTEEN_BITS = sorted(dtype for dtype in FORMATS if BITS[dtype] <= 16)


def meaning(dtype: str, bits: int) -> str:
    """`nan`, `inf`, `zero` or `number`."""
    exponent_bits, fraction_bits, kind = FORMATS[dtype]
    if kind == "e8m0":
        return "nan" if bits == 0xFF else "number"
    sign, magnitude = divmod(bits, 2 ** (exponent_bits + fraction_bits))
    exponent, fraction = divmod(magnitude, 2**fraction_bits)
    if magnitude == 0:
        return "nan" if sign and kind == "negative zero" else "zero"
    highest = exponent == 2**exponent_bits - 1
    if kind == "ieee" and highest:
        return "nan" if fraction else "inf"
    if kind == "all ones" and highest and fraction == 2**fraction_bits - 1:
        return "nan"
    return "number"


def seen(dtype: str, patterns: list[int]) -> Values:
    size = BITS[dtype] // 8
    data = b"".join(bits.to_bytes(size, "little") for bits in patterns)
    return look(np.frombuffer(data, np.uint8), PATTERNS[dtype])


def test_every_dtype_has_its_pattern() -> None:
    assert PATTERNS.keys() == BITS.keys()


@pytest.mark.parametrize("dtype", EIGHT_AND_SIXTEEN_BITS)
def test_every_pattern_of_the_short_types(dtype: str) -> None:
    """Each alone, and all of a kind together: subnormals and the largest finite numbers among them."""
    kinds: dict[str, list[int]] = {"nan": [], "inf": [], "zero": [], "number": []}
    for bits in range(2 ** BITS[dtype]):
        kinds[meaning(dtype, bits)].append(bits)
        if BITS[dtype] == 8 or bits % 37 == 0 or meaning(dtype, bits) != "number":
            found = seen(dtype, [bits])
            assert (found.nan, found.infinite) == (
                meaning(dtype, bits) == "nan",
                meaning(dtype, bits) == "inf",
            )
            assert found.first == (0 if meaning(dtype, bits) in {"nan", "inf"} else None)
            assert found.zero == (meaning(dtype, bits) == "zero")
    finite = seen(dtype, kinds["number"] + kinds["zero"])
    assert (finite.nan, finite.infinite, finite.first, finite.zero) == (0, 0, None, False)
    every = seen(dtype, kinds["number"] + kinds["nan"] + kinds["inf"])
    assert (every.nan, every.infinite) == (len(kinds["nan"]), len(kinds["inf"]))
    assert every.first == len(kinds["number"])


# Of the wide types, the patterns where the answer changes: the largest finite number, infinity, the first and the last NaN,
# the smallest subnormal, and zero; of both signs.
EDGES = {
    dtype: [
        (sign << (exponent + fraction)) | magnitude
        for sign in (0, 1)
        for magnitude in (
            0,
            1,
            (2**exponent - 1 << fraction) - 1,
            2**exponent - 1 << fraction,
            (2**exponent - 1 << fraction) + 1,
            2 ** (exponent + fraction) - 1,
        )
    ]
    for dtype, (exponent, fraction, _) in FORMATS.items()
    if BITS[dtype] > 16
}


@pytest.mark.parametrize("dtype", EDGES)
def test_the_edges_of_the_wide_types(dtype: str) -> None:
    for bits in EDGES[dtype]:
        found = seen(dtype, [bits])
        kind = meaning(dtype, bits)
        assert (found.nan, found.infinite, found.zero) == (kind == "nan", kind == "inf", kind == "zero"), hex(
            bits
        )


@pytest.mark.parametrize("dtype", ["F16", "F32", "F64"])
@given(data=st.data())
def test_any_patterns_as_numpy_sees_them(dtype: str, data: st.DataObject) -> None:
    size = BITS[dtype] // 8
    edges = EDGES.get(dtype, [0x7BFF, 0x7C00, 0x7C01, 0xFBFF, 0xFC00, 0xFFFF, 0x8000])
    word = st.integers(0, 2 ** BITS[dtype] - 1) | st.sampled_from(edges)
    patterns = data.draw(st.lists(word, min_size=1, max_size=40))
    raw = b"".join(bits.to_bytes(size, "little") for bits in patterns)
    numbers = np.frombuffer(raw, f"<f{size}")
    start = data.draw(st.integers(0, 10))
    found = look(np.frombuffer(raw, np.uint8), PATTERNS[dtype], start)
    strange = ~np.isfinite(numbers)
    assert (found.nan, found.infinite) == (np.isnan(numbers).sum(), np.isinf(numbers).sum())
    assert found.first == (start + int(strange.argmax()) if strange.any() else None)
    assert found.zero == (numbers == 0).all()


NAN, INF = struct.pack("<f", float("nan")), struct.pack("<f", float("inf"))
TWO = struct.pack("<f", 2.0)


def test_a_complex_number_counts_once() -> None:
    """By its parts: finite, Inf + 2i, 2 + NaN i, Inf + NaN i, NaN + NaN i. One with a NaN in it is counted as NaN."""
    data = TWO + TWO + INF + TWO + TWO + NAN + INF + NAN + NAN + NAN
    found = look(np.frombuffer(data, np.uint8), PATTERNS["C64"])
    assert (found.nan, found.infinite, found.first) == (3, 1, 1)


@pytest.mark.parametrize("dtype", sorted(set(BITS) - set(FORMATS) - {"C64"}))
def test_integers_and_types_narrower_than_a_byte_are_always_finite(dtype: str) -> None:
    every = look(np.arange(256, dtype=np.uint8).repeat(8), PATTERNS[dtype])
    assert (every.nan, every.infinite, every.zero) == (0, 0, False)
    assert look(np.zeros(64, np.uint8), PATTERNS[dtype]).zero
    assert not look(np.array([0] * 63 + [1], np.uint8), PATTERNS[dtype]).zero
