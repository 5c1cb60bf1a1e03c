"""What a convention's table declares, name by name.

The names of 126 layers are made here at once, without a template being filled in for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.graph.tensors import Row


@dataclass(frozen=True, slots=True)
class Table:
    """A convention's names, in the order of its table; each with the row that declares it.

    Attributes:
        needed: what a checkpoint must hold.
        tied: what it need not: a tied matrix in its second place, unless the convention stores it in both.
    """

    convention: str
    needed: Mapping[str, Row]
    tied: Mapping[str, Row]


def declared(graph: Graph, convention: str) -> Table:
    """Every tensor of a checkpoint in that convention."""
    stores_tied = tensors.convention(graph, convention).stores_tied
    needed: dict[str, Row] = {}
    tied: dict[str, Row] = {}
    for row in tensors.rows(graph, convention):
        into = tied if row.tied_to is not None and not stores_tied else needed
        if row.indices:
            into |= dict.fromkeys((name for name, _ in row.names()), row)
        elif row.layers is None:
            into[row.template.text] = row
        else:
            before, _, after = row.template.text.partition(f"{{{row.layers[0]}}}")
            into |= dict.fromkeys([f"{before}{i}{after}" for i in row.layers[1]], row)
    return Table(convention, needed, tied)


def layer(name: str, row: Row) -> int | None:
    """The layer that a declared tensor stands in; None where it stands in none."""
    found = row.template.match(name) if row.layers else None
    return found[row.layers[0]] if found and row.layers else None
