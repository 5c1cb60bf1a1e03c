"""`components/*.toml`: what a component receives, the weights it declares, and its steps in order."""

from pydantic import Field

from atlas.spec.table import Some, Value, Words


class Weight(Words):
    shape: str
    when: str | None = None
    matrix: str = ""
    """What the accounting calls it; by default a matrix or a vector, by its shape."""


class Step(Words):
    id: str
    op: str
    of: list[str]
    shape: str
    symbol: str = ""
    """How equations write the result."""
    out: str | None = None
    """The name it sets: its own id by default. Setting an earlier one lets an optional step slot in."""
    dtype: str = "A"
    """Of the result: a code, or A for the activations' dtype."""
    computed_in: str = "A"
    over: str | None = None
    """The axis a reduction runs along."""
    by: Value | None = None
    """A literal, or the name of a parameter."""
    when: str | None = None


class Component(Words):
    id: str
    ports: dict[str, str] = Field(alias="in")
    params: dict[str, Value | Some[str]] = {}
    """The default of each; or the words it may be, the default first."""
    weights: dict[str, Weight] = {}
    steps: Some[Step]
