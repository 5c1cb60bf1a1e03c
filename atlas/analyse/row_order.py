"""The order of elements in which each convention stores a weight.

A head's entries rotate in pairs. Meta's files store the two entries of a pair side by side, the Hub's the first entries of
all pairs before the second ones: the rows of wq and wk are the same, in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.graph import Graph


@dataclass(frozen=True, slots=True)
class Order:
    """How the conventions arrange one weight.

    Attributes:
        layouts: convention -> the axes of the stored tensor: `(n_heads two pair) dim`.
        same: whether all conventions store its elements in the same order.
    """

    component: str
    layouts: Mapping[str, str]
    same: bool


def orders(graph: Graph) -> dict[str, Order]:
    """Weight id -> its order in each convention."""
    stored: dict[str, dict[str, shapes.Shape]] = {}
    for convention in graph.architecture.conventions:
        for row in tensors.rows(graph, convention):
            for weight, layout in zip(row.weights, row.layouts, strict=True):
                stored.setdefault(weight.id, {})[convention] = layout
    found = {}
    for weight in graph.weights.values():
        layouts = stored[weight.id]
        # Opened to the axes that any of them names, so that `head_dim` and `two pair` can be compared.
        named = {axis for layout in layouts.values() for axis in shapes.atoms(layout)}
        opened = {
            convention: tuple(
                tuple(shapes.take_apart(list(group), named, graph.products)) for group in layout
            )
            for convention, layout in layouts.items()
        }
        # An axis that one convention counts in the tensor's name has no place in the order within a tensor.
        common = set.intersection(*(set(shapes.atoms(layout)) for layout in opened.values()))
        flat = [[axis for axis in shapes.atoms(layout) if axis in common] for layout in opened.values()]
        found[weight.id] = Order(
            component=weight.component,
            layouts={convention: shapes.render(layout) for convention, layout in opened.items()},
            same=all(axes == flat[0] for axes in flat[1:]),
        )
    return found


def order_note(order: Mapping[str, Order]) -> list[str]:
    """The sentence on weights that the conventions store in another order; none if there are none."""
    found = [each for each in order.values() if not each.same]
    if not found:
        return []
    return [
        f"The rows of {_and([each.component for each in found])} are in a different order in each convention: "
        + "; ".join(
            f"{each.component} is stored as "
            + _and([f"{layout} in {convention}" for convention, layout in each.layouts.items()])
            for each in found
        )
        + ". Both are the same matrix with its rows permuted, not equal tensors."
    ]


def _and(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
