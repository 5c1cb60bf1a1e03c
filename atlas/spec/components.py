"""`components/*.toml`: a component's inputs, weights and ordered steps."""

from pydantic import Field

from atlas.spec.table import Some, Value, Words


class Weight(Words):
    shape: str
    when: str | None = None
    matrix: str = ""
    """Its name in the accounting; by default "matrix" or "vector", from its shape."""


class Step(Words):
    id: str
    op: str
    of: list[str]
    shape: str
    symbol: str = ""
    """The symbol of the result in equations."""
    out: str | None = None
    """The name of the result, by default the step's id. An optional step reuses the name of an earlier result."""
    dtype: str = "A"
    """Dtype of the result: a code, or A for the activations' dtype."""
    computed_in: str = "A"
    over: str | None = None
    """The axis of a reduction."""
    by: Value | None = None
    """A literal, or the name of a parameter."""
    when: str | None = None


class Component(Words):
    id: str
    ports: dict[str, str] = Field(alias="in")
    params: dict[str, Value | Some[str]] = {}
    """Name -> default, or a list of allowed words with the default first."""
    weights: dict[str, Weight] = {}
    steps: Some[Step]
