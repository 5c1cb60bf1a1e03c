"""`architectures/*.toml`: the graph, the tensor names of each convention, and the meaning of configuration keys."""

from typing import Annotated, Any, Literal

from pydantic import Field

from atlas.spec.table import Some, Spec, Value, Words


class Node(Spec):
    id: str
    component: str = Field(alias="is")
    of: str | list[str]
    given: dict[str, Value] = Field({}, alias="with")
    axes: dict[str, str] = {}
    when: str | None = None
    """A condition on the architecture's flags and numbers; without it, the node is always there."""


class Rule(Spec):
    """Which layers something applies to: all of them, or those that meet every condition given.

    `first` and `every` are arithmetic on the model's dims and numbers.
    """

    first: str | None = None
    """Layers 0 to n - 1."""
    every: str | None = None
    """Every n-th layer, the n-th being the first."""
    at: str | None = None
    """The layers whose numbers are in the model's list of this name; with `=word`, those at whose place the list has the word."""
    when: str | None = None
    """A condition on the architecture's flags and numbers."""


class Choice(Rule):
    """A block and a rule for the layers that use it. A layer uses the first choice whose rule matches."""

    block: str


class Variant(Spec):
    """A block that is another block with parameters or axes of some nodes changed."""

    of: str
    given: dict[str, dict[str, Value]] = Field({}, alias="with")
    """Node -> parameter -> value."""
    axes: dict[str, str] = {}
    """Axes renamed in all nodes of the block."""
    nodes: dict[str, str] = {}
    """Node -> its id here, for nodes whose weights have other shapes than in the other block, or that have others."""
    reads: dict[str, list[str]] = {}
    """Node -> what it reads here: symbols inside a node of earlier layers may be among it (`attention.keys`)."""


class Word(Rule):
    """One rule of a pattern: the word that a list of layers has where the rule matches."""

    word: Value = Field(alias="is")


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
    value: Literal["tokens", "positions"] = "tokens"
    """What a run supplies: the ids of the tokens, or the number of each position, from 0."""


class Row(Spec):
    holds: str | list[str]
    """The weights in the tensor; a list where nodes in different layers have it, of which each layer has one."""
    block: str | None = Field(None, alias="in")
    cut: Literal["rows", "columns", "either"] | None = None
    """How model-parallel files split the matrix; None if the shapes of the parts show it."""


class Former(Spec):
    title: str
    """Completes "the names are …"."""
    replace: dict[str, str]
    """Part of a former name -> what the convention has there; applied in this order."""


class Apart(Spec):
    what: str
    when: str
    """A condition on the architecture's flags and numbers."""


class Convention(Spec):
    title: str
    prefix: str = ""
    """What the names begin with, except in checkpoints without it."""
    prefix_when: str | None = None
    """A condition on the architecture's flags; if it is not met, the names have no `prefix`."""
    like: str | None = None
    """Another convention, whose rows this one has except for the weights that its own rows name."""
    inherited: list[str] = []
    """Rows of an architecture that this one is built like; filled in by the library. They may name weights that are absent."""
    within: list["Former"] = []
    """How the names begin in checkpoints of a multimodal model, of which this is the language model: `replace` gives ours."""
    buffers: list[str] = []
    """Ends of names of tensors that old files store and loaders compute anew: `.rotary_emb.inv_freq`."""
    apart: dict[str, str | Apart] = {}
    """A pattern of names, with `{n_layers}` and other axes for their sizes -> what these tensors are; they are counted apart."""
    stores_tied: bool = False
    """Whether a tied matrix is stored under both of its names."""
    former: list["Former"] = []
    """Names that early checkpoints have instead."""
    tensors: dict[str, str | list[str] | Row] = {}
    """A tensor's name, with placeholders -> the weights in it; may be empty where the convention is like another one."""


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


class Differs(Spec):
    """A flag that is set if a key states another value than a second key."""

    other: str = Field(alias="from")
    flag: str


class Config(Spec):
    """The meaning of the keys of a configuration file. A key that is in none of these tables is unknown."""

    like: str | None = None
    """Another table of the architecture, or of one that it is built like, that this one extends."""
    file: str = ""
    model_type: str = ""
    """The `model_type` that the table describes; its own name if empty."""
    where: dict[str, Value] = {}
    """Values that a configuration must state for this table, where several tables describe one `model_type`."""
    stem: str = Field("", alias="class")
    """What stands for `{class}` in the names of `classes`."""
    used: dict[str, str | list[str]] = {}
    """Key -> our name of what it states, or several names."""
    words: dict[str, dict[str, Value]] = {}
    """Key -> the words it may state -> what they mean here. Another word is not described."""
    present: dict[str, str] = {}
    """Key -> the flag that is set if the key states a value, and not set if it is absent or null."""
    differs: dict[str, Differs] = {}
    """Key -> the flag that is set if its value is another one than a second key's."""
    when: dict[str, str] = {}
    """Key -> a condition on flags and numbers; if it is not met, the key is ignored."""
    patterns: dict[str, list[Word]] = {}
    """List of layers -> the rules that give its words if no key states it."""
    rope_kinds: dict[str, str] = {}
    """Kind of layer -> the number that is its theta, for RoPE settings that are stated for each kind of layer.

    Settings that are stated for all layers are those of the first kind; the others are then not scaled.
    """
    optional: list[str] = []
    """Axes that a configuration need not state, and that some models state although no weight has them."""
    expects: dict[str, Value | list[Value]] = {}
    """Key -> the value, or values, that the computation is described for; shapes do not depend on it."""
    absent: dict[str, Any] = {}
    """Key -> the value an absent key means, where null means something else, or where it is a table."""
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
    base: bool = False
    """Whether others are built like this one and it describes no `model_type` itself."""
    like: str | None = None
    """The architecture that this one is built like (see `atlas.spec.inheritance`)."""
    title: str
    summary: str
    cites: list[str] = []
    inputs: dict[str, Input]
    derived: dict[str, str] = {}
    flags: dict[str, Value] = {}
    """Switches and choices, with their defaults."""
    numbers: dict[str, int | float] = {}
    """Numbers with defaults. One whose default is 0 may be stated as 0 or null, which means that there is none."""
    ties: dict[str, str] = {}
    graph: Some[Part]
    stacks: dict[str, Stack] = {}
    blocks: dict[str, Some[Node]] = {}
    variants: dict[str, Variant] = {}
    instead: dict[str, str] = {}
    """Component -> the one that takes its place in every node."""
    given: dict[str, dict[str, Value]] = {}
    """Component -> parameter -> value, for every node that is this component and does not state the parameter itself."""
    pages: dict[str, Words] = {}
    """Text for a node's or an activation's page in addition to its component's."""
    conventions: Annotated[dict[str, Convention], Field(min_length=1)]
    configs: dict[str, Config] = {}
    sample: dict[str, Any] = {}
    """A small configuration with sizes that are all different, which `specs check` and the tests bind and run."""
    samples: dict[str, dict[str, Any]] = {}
    """Name -> keys in which a further sample differs."""
    evidence: dict[str, list[str]] = {}
    """Node, step (`attention.scores`) or weight -> ids of cites of the publisher's code. Not inherited."""
