"""Axes that are products of others: held against the vocabulary once, so that taking one apart always ends soon."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from atlas.errors import SpecError
from atlas.grammar.shapes import MOST_AXES, Group

MOST_NESTED = 8
"""Products of axes in each other."""


def check_products(parts: Mapping[str, Group], axes: Collection[str]) -> None:
    """Refuse products that cannot be taken apart.

    Args:
        parts: for each axis that is a product, the axes it is made of.
        axes: the vocabulary.

    Raises:
        SpecError: an axis is made of one that is not known, or of itself, or of more than any shape has.
    """
    known: dict[str, tuple[int, int]] = {}

    def look_into(name: str, inside: Group) -> tuple[int, int]:
        """How many axes that are no products it comes down to, and through how many levels; each is asked once."""
        if name in known:
            return known[name]
        if name not in axes:
            raise SpecError(f"axes.toml: {inside[-1]} is made of {name}, which is no axis")
        if name in inside:
            raise SpecError(f"axes.toml: {' is made of '.join((*inside, name))}")
        count, levels = 1, 0
        if name in parts and len(inside) <= MOST_NESTED:
            below = [look_into(part, (*inside, name)) for part in parts[name]]
            count, levels = sum(each[0] for each in below), 1 + max((each[1] for each in below), default=0)
        if max(levels, len(inside)) > MOST_NESTED:
            raise SpecError(
                f"axes.toml: {(*inside, name)[0]} is made of products in each other, more than {MOST_NESTED} deep"
            )
        if count > MOST_AXES:
            raise SpecError(
                f"axes.toml: {name} is made of more than {MOST_AXES} axes, counting the parts of its parts"
            )
        known[name] = count, levels
        return known[name]

    for name in parts:
        look_into(name, ())
