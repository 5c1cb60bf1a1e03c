"""Whether the values of some data are finite, and whether all are zero.

Two maxima decide it, of the same words read as signed and as unsigned integers. A positive NaN or infinity is at least the
infinity's pattern. The signed maximum shows it, since negative numbers are below all others there; the unsigned maximum shows a
negative one. All values are zero if no word is above the sign bit alone, and none is above zero as a signed integer.

A maximum of integers is a vector instruction; `isfinite` of a 16-bit float is not. The first maximum runs at the speed of
memory, the second finds its piece in the cache. Only a piece with a NaN or Inf is examined again.
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
"""Large enough that the cost of a call does not matter, small enough that the second maximum finds it in the cache."""


@dataclass(frozen=True, slots=True)
class Values:
    """What was found in the values of a tensor, or of a part of it.

    Attributes:
        bytes: the bytes that were examined.
        nan, infinite: the numbers of such elements; a complex number counts if either part is.
        first: the position of the first of them, in elements from the tensor's start.
        zero: whether all values are zero, positive or negative.
    """

    bytes: int = 0
    nan: int = 0
    infinite: int = 0
    first: int | None = None
    zero: bool = True

    def __or__(self, other: Values) -> Values:
        """The values of two parts together, in any order."""
        firsts = [first for first in (self.first, other.first) if first is not None]
        return Values(
            self.bytes + other.bytes,
            self.nan + other.nan,
            self.infinite + other.infinite,
            min(firsts, default=None),
            self.zero and other.zero,
        )


def look(data: Bytes, pattern: Pattern, start: int = 0) -> Values:
    """Examine bytes that hold whole elements, little-endian and at any address.

    NumPy must not touch mapped bytes while it holds the GIL: at a page that is gone it would stop the thread that helps
    (`atlas.verification.deep.memory_map`). It releases the GIL for large pieces, so no last piece is small, and the maxima have
    an initial value, without which NumPy fetches the first word while it holds the GIL.

    Args:
        start: the number of the tensor's elements before them.
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
    """Begin and end of pieces of `step`; the last one takes the remainder too."""
    whole = max(size // step, 1)
    for i in range(whole):
        yield i * step, size if i + 1 == whole else (i + 1) * step


def _count(words: NDArray[Any], pattern: Pattern, start: int) -> Values:
    """The number of elements that are not finite, and the first of them."""
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
    """The number of elements of two equally long pieces that differ in any bit, and the first of them."""
    count, first = 0, None
    for begin, end in _pieces(a.size, PIECE_BYTES):
        ours, theirs = a[begin:end], b[begin:end]
        if not np.array_equal(ours, theirs):
            unequal = (ours != theirs).reshape(-1, element_bytes).any(axis=1)
            count += int(np.count_nonzero(unequal))
            first = begin // element_bytes + int(unequal.argmax()) if first is None else first
    return count, first
