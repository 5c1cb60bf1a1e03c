"""`architectures/*.toml`: the graph, the tensor names of each convention, and the meaning of configuration keys."""

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
    """A block and a rule for the layers that use it. A layer uses the first choice whose rule matches.

    `first` and `every` are arithmetic on the model's dims and numbers.
    """

    block: str
    first: str | None = None
    """Layers 0 to n - 1."""
    every: str | None = None
    """Every n-th layer."""
    at: str | None = None
    """The layers in the model's list of this name."""


class Stack(Spec):
    """Consecutive layers, each a sequence of blocks."""

    over: str
    """The axis that counts the layers."""
    layers: Some[Some[Choice]]
    axes: dict[str, str] = {}
    """Axes renamed in all blocks of the stack."""


class Part(Spec):
    """One node or one stack of the top level, which is in execution order."""

    node: Node | None = None
    stack: str | None = None
    of: str | None = None
    when: str | None = None
    """A condition on the architecture's flags; without it, the part is always there."""


class Input(Words):
    shape: str
    symbol: str
    dtype: str = "A"


class Row(Spec):
    holds: str
    block: str | None = Field(None, alias="in")
    cut: Literal["rows", "columns", "either"] | None = None
    """How model-parallel files split the matrix; None if the shapes of the parts show it."""


class Former(Spec):
    title: str
    """Completes "the names are …"."""
    replace: dict[str, str]
    """Part of a former name -> what the convention has there; applied in this order."""


class Convention(Spec):
    title: str
    prefix: str = ""
    """What the names begin with, except in checkpoints without it."""
    prefix_when: str | None = None
    """A condition on the architecture's flags; if it is not met, the names have no `prefix`."""
    stores_tied: bool = False
    """Whether a tied matrix is stored under both of its names."""
    former: list["Former"] = []
    """Names that early checkpoints have instead."""
    tensors: dict[str, str | Row]


class Computes(Spec):
    """A key that changes the computation but no shape, and of which only some values are described."""

    only: list[Value] = []
    reason: str
    """What another value means, as a clause of a message; `{value}` is replaced by it."""
    affects: list[str]
    window: str = ""
    """The config key with the longest context on which the setting has no effect."""


class Head(Spec):
    """What a class in `architectures` puts on top of the last layer."""

    head: str
    """The value of the architecture's flag `head`."""
    used: dict[str, str] = {}
    counted: dict[str, str] = {}
    """Key -> an axis; its size is the number of the key's entries (`id2label`)."""
    defaults: dict[str, int] = {}
    """Sizes of axes that no key states."""
    lacks: str = ""
    """For a class without logits over the vocabulary: what it has instead, as a clause of a message."""
    affects: list[str] = []
    """The commands that need such logits, and refuse."""


class Generation(Spec):
    """Other defaults for files that state one of some keys: a later version of the code reads those."""

    stated: list[str]
    whose: str
    defaults: dict[str, Value] = {}


class Config(Spec):
    """The meaning of the keys of a configuration file. A key that is in none of these tables is unknown."""

    like: str | None = None
    file: str = ""
    used: dict[str, str] = {}
    absent: dict[str, Value] = {}
    """Key -> the value an absent key means, where null means something else."""
    defaults: dict[str, Value] = {}
    generations: list[Generation] = []
    """Versions of the code with other defaults; the first that fits is used."""
    classes: dict[str, Head] = {}
    """Class in `architectures` -> its head. Other classes are refused."""
    whose: str = ""
    """Whose code the defaults are from, for the note on a default that is used."""
    only: dict[str, list[Value | list[Value]]] = {}
    computes: dict[str, Computes] = {}
    agrees: dict[str, str] = {}
    """Key -> a formula of other dimensions that its value must equal."""
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
    """Text for a node's or an activation's page in addition to its component's."""
    conventions: Annotated[dict[str, Convention], Field(min_length=1)]
    configs: dict[str, Config] = {}
