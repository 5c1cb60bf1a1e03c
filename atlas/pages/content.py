"""The content of a page, as plain data: for the terminal, for JSON and for other renderers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from atlas.analyse.trace import Size
from atlas.evidence.bibliography import Evidence
from atlas.evidence.check import Line
from atlas.tables import Tabular


@dataclass(frozen=True, slots=True)
class Equation:
    latex: str
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """What flows in or out: `z [B batch, T positions, 4096 d]`."""

    name: str
    symbol: str
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str
    text: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A line of the exact accounting."""

    component: str
    calculation: str
    parameters: int


@dataclass(frozen=True, slots=True)
class Code:
    """A file that shows it, with the lines; the excerpt only where the source is at hand and its hash is right."""

    source: str
    path: str
    lines: tuple[tuple[int, int], ...]
    excerpt: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class StoredName:
    """How one convention stores a weight.

    Attributes:
        name: with placeholders for indices: `model.layers.{layer}.self_attn.q_proj.weight`.
        layout: the axes of the stored tensor, in torch's order: `(n_heads two pair) dim`.
    """

    convention: str
    name: str
    shape: tuple[int, ...]
    layout: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A dimension or setting that differs from the model that this one follows; None if a model does not state it."""

    name: str
    before: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts at the top of a model's page.

    Attributes:
        differs_from: the described model of the followed family that differs least.
        differences: from that model, in dimensions and settings; weights are not compared.
        nodes: the nodes of the graph in execution order, each once.
    """

    publisher: str
    released: str
    family: str
    follows: str | None
    kind: str
    hub_id: str | None
    context_length: int | None
    dtype: str
    differs_from: str | None
    differences: tuple[Difference, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Page(Tabular):
    """The result of `atlas explain`.

    Attributes:
        kind: `model`, `learned` (a component with weights), `computed` (one without), `activation`, `step`, `topic` or `input`.
        accounting: for a component, one instance's; for a model, all components' with every instance.
        instances: the number of layers that have it.
        parameters: of all its instances.
        stored: a component's names and shapes in each convention.
        rests_on: where the figures are from.
        not_described: settings of the model that the page leaves out, because they are not described.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("accounting",)

    model: str
    node: str | None
    kind: str
    title: str
    summary: str
    expression: str
    equation: Equation
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    accounting: tuple[Amount, ...]
    instances: int
    parameters_per_instance: int
    parameters: int
    stored: tuple[StoredName, ...]
    notes: tuple[str, ...]
    not_described: tuple[str, ...]
    rests_on: str
    code: tuple[Code, ...]
    sources: tuple[Evidence, ...]
    facts: Facts | None
