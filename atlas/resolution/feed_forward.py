"""The feed-forward's width, as Meta's reference code computes it (cite: feed-forward-width).

Two of its steps are IEEE double products truncated by `int()`, and the result depends on that: with dim 64 and a
multiplier of 1.4 the double product is 237.99999999999997, so 237, where exact arithmetic would give 238. From there on
all is integers.
"""

from __future__ import annotations


def width(dim: int, multiple_of: int, multiplier: float | None) -> int:
    """The width: two thirds of 4·dim, times the multiplier, rounded up to a multiple.

    Args:
        dim: width of the residual stream.
        multiple_of: what the width is rounded up to a multiple of.
        multiplier: `ffn_dim_multiplier`; None where there is none.

    Raises:
        OverflowError: the sizes do not fit a double.
    """
    hidden = int(2 * (4 * dim) / 3)
    if multiplier is not None:
        hidden = int(multiplier * hidden)
    return multiple_of * ((hidden + multiple_of - 1) // multiple_of)
