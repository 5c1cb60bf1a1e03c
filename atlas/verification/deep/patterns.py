"""Which bit patterns of a dtype are NaN, infinite or zero.

IEEE 754 stores a number as sign, exponent, fraction. Without the sign, patterns are in the order of their magnitudes, and
an exponent of ones only is reserved: an infinity if the fraction is zero, else NaN. So one comparison with the infinity's
pattern is enough. BF16 is binary32 without its last 16 bits.

Of the 8-bit types, E5M2 is like that too; E4M3 has no infinity, and only its highest magnitude is NaN (OCP 8-bit Floating
Point Specification, 1.0). E8M0 is an exponent alone, without sign and without zero, 0xFF its NaN (OCP Microscaling Formats,
1.0). The FNUZ types have neither infinity nor negative zero, whose pattern is their NaN (Noune et al. 2022, 8-bit Numerical
Formats for Deep Neural Networks). The types narrower than a byte have no pattern that is not a number, nor have integers.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """The bit patterns of a dtype that are not finite.

    Attributes:
        word_bytes: the size of the unsigned integer that a pattern is read as.
        words: the number of such integers in one element, 2 in a complex number.
        infinity: magnitudes (without the sign bit) from here up are not finite; None if the order does not decide it.
        nan: magnitudes from here up are NaN.
        only_nan: the one pattern that is NaN, if the order does not decide it.
        zero: whether the dtype has a zero, with no bits set.
    """

    word_bytes: int
    words: int = 1
    infinity: int | None = None
    nan: int = 0
    only_nan: int | None = None
    zero: bool = True

    @property
    def sign(self) -> int:
        """The highest bit; if there is an `infinity`, it is the sign, and by itself negative zero."""
        return int(1 << (8 * self.word_bytes - 1))


def _ieee(word_bytes: int, infinity: int, words: int = 1) -> Pattern:
    return Pattern(word_bytes, words, infinity=infinity, nan=infinity + 1)


_NUMBERS = ("BOOL", "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F4", "F6_E2M3", "F6_E3M2")

PATTERNS = {
    "BF16": _ieee(2, 0x7F80),
    "F16": _ieee(2, 0x7C00),
    "F32": _ieee(4, 0x7F80_0000),
    "F64": _ieee(8, 0x7FF0_0000_0000_0000),
    "C64": _ieee(4, 0x7F80_0000, words=2),
    "F8_E5M2": _ieee(1, 0x7C),
    "F8_E4M3": Pattern(1, infinity=0x7F, nan=0x7F),
    "F8_E8M0": Pattern(1, only_nan=0xFF, zero=False),
    "F8_E4M3FNUZ": Pattern(1, only_nan=0x80),
    "F8_E5M2FNUZ": Pattern(1, only_nan=0x80),
    **dict.fromkeys(_NUMBERS, Pattern(1)),
}
"""The pattern of every dtype. Integers are read as bytes: only whether any bit is set matters."""
