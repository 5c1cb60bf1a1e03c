"""Exact counts that may depend on axes of unknown size.

The FLOPs of a step are a product of axis sizes, and the FLOPs of a pass are the sum over steps. If batch or positions
are free, the sum is a polynomial in them with integer coefficients: `15009316864*B*T + 524288*B*T*S`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of terms: an integer coefficient times a product of symbols of free axes."""

    terms: Mapping[tuple[str, ...], int]

    @staticmethod
    def product(
        axes: Iterable[str], sizes: Mapping[str, int], symbols: Mapping[str, str], times: int = 1
    ) -> Formula:
        """`times` × the axes' sizes. An axis without a size stays as its symbol, in the order of `symbols`."""
        axes = list(axes)
        known = math.prod(sizes[axis] for axis in axes if axis in sizes)
        left = [axis for axis in axes if axis not in sizes]
        if len(left) > 1:
            place = {axis: i for i, axis in enumerate(symbols)}
            left.sort(key=lambda axis: (place.get(axis, len(place)), axis))
        free = tuple(symbols.get(axis, axis) for axis in left)
        return Formula({free: times * known} if times * known else {})

    def __add__(self, other: Formula) -> Formula:
        terms = dict(self.terms)
        for free, count in other.terms.items():
            terms[free] = terms.get(free, 0) + count
        return Formula(terms)

    def __mul__(self, times: int) -> Formula:
        return Formula({free: count * times for free, count in self.terms.items()} if times else {})

    @property
    def value(self) -> int | None:
        """The count, or None if it depends on a free axis."""
        return None if any(self.terms) else self.terms.get((), 0)

    def __str__(self) -> str:
        return " + ".join("*".join((str(count), *free)) for free, count in self.terms.items()) or "0"


def total(formulas: Iterable[Formula]) -> Formula:
    """The sum of all of them."""
    result = Formula({})
    for formula in formulas:
        result += formula
    return result
