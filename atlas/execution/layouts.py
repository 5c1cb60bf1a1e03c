"""How a stored tensor holds a weight: cut out of a packed one, and turned into the declared order.

One difference is left as it is stored. Where only the parts of an axis that a step rotates lie in another order (the
Hub's halves of a head against Meta's neighbouring pairs), the rotation follows the order, and no number is moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from atlas.errors import NotDescribed
from atlas.execution.align import View
from atlas.grammar import shapes
from atlas.grammar.shapes import REST, Shape, atoms
from atlas.graph.graph import Graph, Weight
from atlas.graph.tensors import Row

Order = Mapping[str, tuple[str, ...]]
"""Axis -> its parts in the order in which they lie, for axes that do not lie as the vocabulary has them."""


def kept_order(graph: Graph, weight: Weight, lies: Shape) -> Order:
    """The rotated axes of a weight whose parts lie in another order than the vocabulary's."""
    rotated = {
        step.over
        for block in graph.blocks
        for node in block.nodes
        if node.id == weight.node
        for step in node.steps
        if step.op == "rotate" and step.over is not None
    }
    found: dict[str, tuple[str, ...]] = {}
    stored = atoms(lies)
    for axis in rotated.intersection(atoms(weight.shape)):
        parts = graph.products.get(axis, ())
        if set(parts) <= set(stored):
            found[axis] = tuple(sorted(parts, key=stored.index))
    return {axis: order for axis, order in found.items() if order != graph.products.get(axis, ())}


def unpacking(row: Row, number: int, graph: Graph, order: Order) -> View:
    """What makes the row's number-th weight, in its declared shape, of the stored tensor: a view where its order allows.

    Args:
        order: what `kept_order` says of it.

    Raises:
        NotDescribed: it is packed in a way that cannot be run yet.
    """
    weight, lies = row.weights[number], row.layouts[number]
    cut = _cutting(row, number, graph)
    if lies == weight.shape:
        return cut
    stored = atoms(lies)
    declared: list[str] = []
    for axis in atoms(weight.shape):
        declared += order.get(axis) or shapes.take_apart([axis], stored, graph.products)
    turn = [stored.index(axis) for axis in declared]
    sizes = [graph.dims[axis] for axis in stored]
    shape = [shapes.size(group, graph.dims) for group in weight.shape]
    return lambda tensor: cut(tensor).reshape(sizes).permute(turn).reshape(shape)


def is_as_declared(row: Row, number: int) -> bool:
    """Whether the row's number-th weight is the stored tensor as it is."""
    return row.holds.packed_along is None and row.layouts[number] == row.weights[number].shape


def _cutting(row: Row, number: int, graph: Graph) -> View:
    """What cuts one weight out of a packed tensor; nothing, where the tensor is that weight."""
    along, layout = row.holds.packed_along, row.holds.layout
    if along is None or layout is None:
        return lambda tensor: tensor
    group = layout[along]
    if group[-1] != REST:
        raise NotDescribed(
            f"{row.template.text}: ({shapes.render(layout)}) is a packing that cannot be run yet"
        )
    lead = len(group) - 1  # axes that all the weights in it share, before those of its own
    own = [shapes.size(lies[along][lead:], graph.dims) for lies in row.layouts]
    sizes = [*(graph.dims[axis] for axis in group[:lead]), sum(own)]
    begin, length = sum(own[:number]), own[number]

    def cut(tensor: Tensor) -> Tensor:
        part = torch.unflatten(tensor, along, sizes).narrow(along + lead, begin, length)
        return part.flatten(along, along + lead)

    return cut
