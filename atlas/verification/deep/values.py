"""What the values of a piece of data are: finite or not, and whether all are zero.

Two maxima tell it, of the same words read as signed and as unsigned integers. A positive NaN or infinity is at least the
infinity's pattern, which the signed maximum shows, since negative numbers are below all others there; a negative one shows
in the unsigned maximum. All are zero where no word is above the sign bit alone, and none is above zero as a signed integer.

A maximum of integers is a vector instruction, as `isfinite` of a 16-bit float is not: the first reads memory about as fast
as it comes, the second finds a piece that fits the cache. Only a piece that has something in it is looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atlas.verification.deep.patterns import Pattern

Bytes = NDArray[np.uint8]

PIECE_BYTES = 768 * 2**10
"""Enough for the cost of a call to vanish, little enough for the second maximum to find it in the cache."""


@dataclass(frozen=True, slots=True)
class Values:
    """What the values of a tensor are, or those of a part of it.

    Attributes:
        bytes: how much was looked at.
        nan, infinite: how many elements are; of complex numbers, those with such a part.
        first: where the first of them stands, counted in elements from the tensor's start.
        zero: all are zero, positive or negative.
    """

    bytes: int = 0
    nan: int = 0
    infinite: int = 0
    first: int | None = None
    zero: bool = True

    def __or__(self, other: Values) -> Values:
        """Those of two parts, in any order."""
        firsts = [first for first in (self.first, other.first) if first is not None]
        return Values(
            self.bytes + other.bytes,
            self.nan + other.nan,
            self.infinite + other.infinite,
            min(firsts, default=None),
            self.zero and other.zero,
        )


def look(data: Bytes, pattern: Pattern, start: int = 0) -> Values:
    """Look at bytes that hold whole elements, little-endian and at any address.

    They are touched while other threads may run, as far as there are thousands of them: a page of them that is gone would
    else stop the very thread that helps (`atlas.verification.deep.mapped`). So no last piece is small, and the maxima have an
    initial value, without which NumPy fetches the first word with the interpreter locked.

    Args:
        start: how many elements of the tensor lie before them.
    """
    unsigned, signed = (data.view(f"<{kind}{pattern.word_bytes}") for kind in "ui")
    zero, found = pattern.zero, Values()
    for begin, end in _pieces(unsigned.size, PIECE_BYTES // pattern.word_bytes):
        words, numbers = unsigned[begin:end], signed[begin:end]
        if not words.flags.aligned:
            words = words.copy()
            numbers = words.view(signed.dtype)
        highest = int(np.maximum.reduce(words, initial=0))
        if pattern.infinity is None:
            strange = pattern.only_nan is not None and bool((words == pattern.only_nan).any())
            zero = zero and highest == 0
        else:
            positive = int(np.maximum.reduce(numbers, initial=0))
            strange = positive >= pattern.infinity or highest >= pattern.sign + pattern.infinity
            zero = zero and highest <= pattern.sign and positive <= 0
        if strange:
            found |= _count(words, pattern, start + begin // pattern.words)
    return replace(found, bytes=data.size, zero=zero)


def _pieces(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Where so many things are cut into pieces of `step`, the last of which is longer by what is left."""
    whole = max(size // step, 1)
    for i in range(whole):
        yield i * step, size if i + 1 == whole else (i + 1) * step


def _count(words: NDArray[Any], pattern: Pattern, start: int) -> Values:
    """How many elements are no finite number, and the first."""
    if pattern.infinity is None:
        nan = strange = words == pattern.only_nan
    else:
        magnitudes = words & (pattern.sign - 1)
        nan, strange = magnitudes >= pattern.nan, magnitudes >= pattern.infinity
    if pattern.words > 1:
        nan, strange = (parts.reshape(-1, pattern.words).any(axis=1) for parts in (nan, strange))
    nans = int(np.count_nonzero(nan))
    infinite = int(np.count_nonzero(strange)) - nans
    return Values(nan=nans, infinite=infinite, first=start + int(strange.argmax()), zero=False)


def differing(a: Bytes, b: Bytes, element_bytes: int) -> tuple[int, int | None]:
    """How many elements of two equally long pieces differ in any bit, and the first of them."""
    count, first = 0, None
    for begin, end in _pieces(a.size, PIECE_BYTES):
        ours, theirs = a[begin:end], b[begin:end]
        if not np.array_equal(ours, theirs):
            unequal = (ours != theirs).reshape(-1, element_bytes).any(axis=1)
            count += int(np.count_nonzero(unequal))
            first = begin // element_bytes + int(unequal.argmax()) if first is None else first
    return count, first
