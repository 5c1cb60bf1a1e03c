"""`axes.toml`: the vocabulary that shapes are written in."""

from pydantic import Field

from atlas.spec.table import Spec


class Axis(Spec):
    meaning: str
    symbol: str
    label: str = ""
    """How a shape names the axis beside its size; the symbol where it is empty."""
    index: str | None = None
    """The placeholder that counts along this axis in a tensor's name."""
    parts: str | None = Field(None, alias="is")
    """The smaller axes whose product this one is."""
    size: str | None = None
    """Exact arithmetic on other axes, for an axis no model states."""
