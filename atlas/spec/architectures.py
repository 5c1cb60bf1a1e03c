"""`architectures/*.toml`: the graph, the names each convention gives its tensors, and what configuration keys mean."""

from typing import Annotated, Literal

from pydantic import Field

from atlas.spec.table import Some, Spec, Value, Words


class Node(Spec):
    id: str
    component: str = Field(alias="is")
    of: str | list[str]
    given: dict[str, Value] = Field({}, alias="with")
    axes: dict[str, str] = {}


class Choice(Spec):
    """A block, and the layers it stands in; where there are several, the first that fits is taken.

    `first` and `every` are arithmetic on the model's dims and numbers.
    """

    block: str
    first: str | None = None
    """The layers before the n-th."""
    every: str | None = None
    """The n-th, the 2n-th, ..."""
    at: str | None = None
    """The layers the model lists under this name."""


class Stack(Spec):
    """Layers in turn, each a sequence of blocks."""

    over: str
    """The axis that counts the layers."""
    layers: Some[Some[Choice]]
    axes: dict[str, str] = {}
    """Axes renamed for all of the stack's blocks."""


class Part(Spec):
    """One node, or one stack, of the top level, in execution order."""

    node: Node | None = None
    stack: str | None = None
    of: str | None = None


class Input(Words):
    shape: str
    symbol: str
    dtype: str = "A"


class Row(Spec):
    holds: str
    block: str | None = Field(None, alias="in")
    cut: Literal["rows", "columns", "either"] | None = None
    """Of model-parallel files: how the stored matrix is divided among the devices; None where its shares' shapes tell."""


class Convention(Spec):
    title: str
    stores_tied: bool = False
    """Whether a tied matrix is stored in both of its places."""
    tensors: dict[str, str | Row]


class Computes(Spec):
    """A config key that changes the computation but no shape: described for some values, noted for others."""

    only: list[Value] = []
    says: str
    affects: list[str]
    window: str = ""
    """The config key with the longest context on which the setting has no effect."""


class Config(Spec):
    """What the keys of a configuration file mean; a key that is in none of the tables is unknown."""

    like: str | None = None
    file: str = ""
    used: dict[str, str] = {}
    absent: dict[str, Value] = {}
    """What an absent key means, where null means something else: key -> value."""
    defaults: dict[str, Value] = {}
    whose: str = ""
    """The end of a note on a default that is used: whose it is."""
    only: dict[str, list[Value | list[Value]]] = {}
    computes: dict[str, Computes] = {}
    agrees: dict[str, str] = {}
    """Key -> what it must be equal to, a formula of dimensions that other keys give."""
    ignored: list[str] = []


class Architecture(Spec):
    id: str
    title: str
    summary: str
    expression: str = ""
    text: str = ""
    latex: str = ""
    cites: list[str] = []
    inputs: dict[str, Input]
    derived: dict[str, str] = {}
    flags: dict[str, Value] = {}
    ties: dict[str, str] = {}
    graph: Some[Part]
    stacks: dict[str, Stack] = {}
    blocks: dict[str, Some[Node]] = {}
    pages: dict[str, Words] = {}
    """What a node's or an activation's page says beyond its component's words."""
    conventions: Annotated[dict[str, Convention], Field(min_length=1)]
    configs: dict[str, Config] = {}
