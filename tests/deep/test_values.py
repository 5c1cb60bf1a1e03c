"""Pieces: what is found does not depend on where it lies, in how many pieces, and at what address."""

from __future__ import annotations

import numpy as np
import pytest

from atlas.verification.deep.patterns import PATTERNS
from atlas.verification.deep.values import PIECE_BYTES, Values, differing, look
from tests.deep.files import words

NAN = {"BF16": 0xFFC0, "F32": 0x7FC00000, "F64": 0xFFF8000000000000, "F8_E4M3": 0xFF, "F8_E8M0": 0xFF}
INF = {"BF16": 0xFF80, "F32": 0x7F800000, "F64": 0xFFF0000000000000, "F8_E5M2": 0xFC}


@pytest.mark.parametrize("address", [0, 1, 3])
@pytest.mark.parametrize("dtype", sorted({*NAN, *INF}))
def test_first_last_and_the_borders_of_pieces(dtype: str, address: int) -> None:
    size = PATTERNS[dtype].word_bytes
    step = PIECE_BYTES // size
    count = 2 * step + 17
    for bits in {NAN.get(dtype), INF.get(dtype)} - {None}:
        for at in (0, step - 1, step, 2 * step, count - 1):
            raw = np.frombuffer(bytes(address) + words(count, size, {at: bits}, filler=0x01), np.uint8)
            found = look(raw[address:], PATTERNS[dtype], start=5)
            assert (found.nan + found.infinite, found.first) == (1, 5 + at)
            assert found.infinite == (bits == INF.get(dtype))


def test_the_first_of_many() -> None:
    step = PIECE_BYTES // 2
    planted = {step + 3: 0x7F80, step + 4: 0x7FC0, 2 * step: 0xFF80, 10: 0x7F7F}
    found = look(np.frombuffer(words(3 * step, 2, planted), np.uint8), PATTERNS["BF16"])
    assert (found.nan, found.infinite, found.first, found.zero) == (1, 2, step + 3, False)


def test_zero_of_both_signs_in_every_piece() -> None:
    step = PIECE_BYTES // 2
    zero = words(3 * step, 2, {7: 0x8000, 2 * step: 0x8000})
    assert look(np.frombuffer(zero, np.uint8), PATTERNS["BF16"]).zero
    for at in (0, step, 3 * step - 1):
        for bits in (0x0001, 0x8001, 0x3F80):  # the smallest subnormal of either sign, and one
            other = np.frombuffer(words(3 * step, 2, {at: bits}), np.uint8)
            assert not look(other, PATTERNS["BF16"]).zero


def test_parts_add_up_in_any_order() -> None:
    parts = [Values(4, 1, 0, 9, zero=False), Values(8), Values(2, 0, 2, 3, zero=False)]
    whole = Values(14, 1, 2, 3, zero=False)
    assert parts[0] | parts[1] | parts[2] == whole
    assert parts[2] | parts[0] | parts[1] == whole
    assert Values() | Values(6) == Values(6)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_what_differs_is_counted_in_elements(size: int) -> None:
    step = PIECE_BYTES // size
    a = np.frombuffer(words(2 * step + 5, size, {}), np.uint8)
    assert differing(a, a.copy(), size) == (0, None)
    planted = {step - 1: 1, step: 2 ** (8 * size) - 1, 2 * step + 4: 1}
    b = np.frombuffer(words(2 * step + 5, size, planted), np.uint8)
    assert differing(a, b, size) == (3, step - 1)
    assert differing(b, a, size) == (3, step - 1)
