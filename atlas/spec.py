"""The description files as they are: one class for each kind of table under `specs/`.

A stray key, a wrong type or a missing field is an error, never silence (`extra="forbid"`, `strict`). Nothing is
resolved here: names are strings until `atlas.library` checks them across files and `atlas.graph` binds them.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

Value = bool | int | float | str

T = TypeVar("T")
Some = Annotated[list[T], Field(min_length=1)]
"""A list that would make no sense empty."""


class Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# ---------------------------------------------------------------- axes.toml, bibliography/*.toml


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


class Source(Spec):
    """Something that can be cited: a file at a fixed revision."""

    kind: Literal["git", "pypi", "hub"]
    role: Literal["reference", "catalogue", "dependency", "checkpoint"]
    title: str
    repo: str
    revision: str = ""
    path: str
    package: str = ""
    version: str = ""
    package_path: str = ""
    """Where the same file stands in the package, for a source that is one too."""
    lines: int = 0
    file_sha256: str = ""
    describes: list[str] = []
    """The families whose very own code or catalogue this is: there it bears a claim out directly."""


class Cite(Spec):
    claim: str
    at: list[str]
    """Every place that says it: `llama3 266-269,298-302 sha256:…`, or for a published configuration its source alone."""
    values: dict[str, Any] = {}
    """For a published configuration, the values read in it."""


class Bibliography(Spec):
    sources: dict[str, Source] = {}
    cites: dict[str, Cite] = {}


# ---------------------------------------------------------------- components/*.toml


class Note(Spec):
    text: str
    when: str | None = None


class Words(Spec):
    """What a page says of a thing; `text` is the equation in Unicode, `latex` the same in LaTeX."""

    title: str = ""
    summary: str = ""
    expression: str = ""
    text: str = ""
    latex: str = ""
    notes: list[Note] = []
    cites: list[str] = []


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
    params: dict[str, Value | list[str]] = {}
    weights: dict[str, Weight] = {}
    steps: Some[Step]


# ---------------------------------------------------------------- architectures/*.toml


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
    only: dict[str, list[Value]] = {}
    computes: dict[str, Computes] = {}
    agrees: dict[str, str] = {}
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


# ---------------------------------------------------------------- catalogue/*.toml, models/*.toml


class Named(Spec):
    lines: list[list[int]]
    sha256: str


class CatalogueEntry(Spec):
    """One entry of Meta's catalogue as it stands, every value resolved. `atlas specs import` writes these."""

    descriptor: str
    core_model_id: str
    variant: str = ""
    family: str
    description: str
    huggingface_repo: str | None = None
    quantization_format: str
    pth_file_count: int
    max_seq_length: int
    metadata: dict[str, Any] = {}
    lines: list[list[int]]
    sha256: str
    uses: list[str] = []
    arch_args: dict[str, Any]


class Catalogue(Spec):
    source: str
    names: dict[str, Named] = {}
    entries: list[CatalogueEntry]


class Conflict(Spec):
    """Where the catalogue's entry and the released checkpoint disagree, and which value is used."""

    field: str
    used: Value | None = None
    absent: bool = False
    """The released checkpoint has no such value (TOML has no null)."""
    why: str
    cites: list[str]


class Entry(Spec):
    """One model of a family: its catalogue entry, the ids it goes by, and what is known beyond the catalogue."""

    id: str
    name: str
    kind: str
    catalogue: str = ""
    """The descriptor of its entry in Meta's catalogue; empty where `config` states its dimensions."""
    config: dict[str, Any] = {}
    """Settings as a config.json gives them, for a model that is in no catalogue."""
    hub_id: str | None = None
    aliases: list[str] = []
    architecture: str | None = None
    undescribed: str = ""
    """For an entry without an architecture: what is not described yet."""
    dtype: str = "BF16"
    notes: list[Note] = []
    cites: list[str] = []
    conflicts: list[Conflict] = []


class Family(Spec):
    id: str
    name: str
    publisher: str
    released: str
    follows: str | None = None
    kind: str
    models: list[Entry]
