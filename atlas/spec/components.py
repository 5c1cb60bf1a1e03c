"""`components/*.toml`: a component's inputs, weights and ordered steps."""

from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from atlas.spec.table import Some, Spec, Value, Words


class Weight(Words):
    shape: str
    when: str | None = None
    trained: bool = True
    """False for a buffer: stored in a checkpoint, and no parameter."""
    matrix: str = ""
    """Its name in the accounting; by default "matrix" or "vector", from its shape."""


class Step(Words):
    """An operation, or with `use` the steps and weights of another component at this place.

    A used component's weights are called by the step's id: `q_norm` for its weight `weight`, else `q_norm.bias`.
    """

    id: str
    op: str = ""
    use: str = ""
    """A component, instead of an operation."""
    given: dict[str, Value] = Field({}, alias="with")
    """Parameters of the used component; a value may be the name of a parameter of this one."""
    axes: dict[str, str] = {}
    """Axes renamed in the used component."""
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
    share: Value | None = None
    """Of `rotate`: the share of the axis's entries, from the first, that rotate. A literal, or the name of a parameter."""
    pairs: str | None = None
    """Of `rotate`: the parameter that says which entries form a plane, `halves` or `neighbours`."""
    rope: str | None = None
    """Of `rotate`: the parameter that names the kind of layer whose RoPE settings are used."""
    state: str | None = None
    """The shape of what the step keeps from one pass to the next in place of keys and values."""
    when: str | None = None


class Equation(Spec):
    """What a component says of itself where its parameters meet a condition. What is empty is as without the condition."""

    when: str
    title: str = ""
    summary: str = ""
    expression: str = ""
    text: str = ""
    latex: str = ""
    short: str = ""


class Component(Words):
    id: str
    ports: dict[str, str] = Field(alias="in")
    optional: list[str] = []
    """The last ports, if they need not be given."""
    params: dict[str, Value | Some[str]] = {}
    """Name -> default, or a list of allowed words with the default first."""
    equations: list[Equation] = []
    """Instead of the component's own equation: the first whose condition on the parameters is met."""
    short: str = ""
    """How it stands in the equation of a whole layer, with ports in angle brackets: `norm(<x>)`, `<x> + <y>`."""
    composed: bool = False
    """Whether the equation on its page is composed of those of its operands, as a residual's is."""
    weights: dict[str, Weight] = {}
    steps: Some[Step]

    @model_validator(mode="after")
    def _optional_ports_are_last(self) -> Self:
        if self.optional and self.optional != list(self.ports)[-len(self.optional) :]:
            raise PydanticCustomError("optional", "optional: expected the last ports, in order")
        return self
