"""`axes.toml`: the named axes that shapes consist of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import Field

from atlas.errors import SpecError
from atlas.grammar.shapes import MOST_AXES, Group
from atlas.spec.table import Spec

MOST_NESTED = 8
"""Deepest nesting of product axes."""


class Axis(Spec):
    meaning: str
    symbol: str
    label: str = ""
    """The axis's name next to its size in a printed shape; the symbol if empty."""
    index: str | None = None
    """The placeholder for an index along this axis in a tensor name."""
    parts: str | None = Field(None, alias="is")
    """The smaller axes whose product is this one."""
    at_most: str = ""
    """An axis that this one selects from, and so cannot exceed."""
    size: str | None = None
    """Exact arithmetic on other axes, for an axis that no model states."""
    split: bool = False
    """Whether it counts heads, over which devices divide what is cached (see `atlas.analyse.devices`)."""


def check_products(parts: Mapping[str, Group], axes: Collection[str]) -> None:
    """Refuse product axes that cannot be split, so that splitting one always terminates.

    Args:
        parts: product axis -> the axes it consists of.
        axes: all axes.

    Raises:
        SpecError: an axis consists of an unknown axis, of itself, or of too many axes.
    """
    known: dict[str, tuple[int, int]] = {}

    def measure(name: str, inside: Group) -> tuple[int, int]:
        """The number of plain axes in an axis, and the depth of its products. Each axis is computed once."""
        if name in known:
            return known[name]
        if name not in axes:
            raise SpecError(f"axes.toml: {inside[-1]} is made of {name}, which is not an axis")
        if name in inside:
            raise SpecError(f"axes.toml: {' is made of '.join((*inside, name))}")
        count, levels = 1, 0
        if name in parts and len(inside) <= MOST_NESTED:
            below = [measure(part, (*inside, name)) for part in parts[name]]
            count, levels = sum(each[0] for each in below), 1 + max((each[1] for each in below), default=0)
        if max(levels, len(inside)) > MOST_NESTED:
            raise SpecError(
                f"axes.toml: {(*inside, name)[0]} consists of products nested more than {MOST_NESTED} deep"
            )
        if count > MOST_AXES:
            raise SpecError(
                f"axes.toml: {name} consists of more than {MOST_AXES} axes, counting the parts of its parts"
            )
        known[name] = count, levels
        return known[name]

    for name in parts:
        measure(name, ())
