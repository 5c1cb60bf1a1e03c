"""What a page says, as plain data: for the terminal, for JSON, and for whatever else shows one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
class Facts:
    """What a model's page says at its top."""

    publisher: str
    released: str
    family: str
    follows: str | None
    kind: str
    hub_id: str | None
    context_length: int | None
    dtype: str


@dataclass(frozen=True, slots=True, repr=False)
class Page(Tabular):
    """What `atlas explain` says.

    Attributes:
        kind: `model`, `learned` (a component with weights), `computed` (one without), `activation` or `input`.
        accounting: for a component, one instance's; for a model, all components' with every instance.
        instances: in how many layers it stands.
        parameters: of all its instances.
        rests_on: what the figures rest on.
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
    notes: tuple[str, ...]
    rests_on: str
    code: tuple[Code, ...]
    sources: tuple[Evidence, ...]
    facts: Facts | None
