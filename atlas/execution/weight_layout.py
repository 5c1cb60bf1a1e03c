"""How a stored tensor holds a weight: sliced out of a packed tensor, and permuted into the declared order.

One difference is not undone. Where only the parts of a rotated axis are stored in another order (the Hub's halves of a
head, Meta's neighbouring pairs), the rotation follows the stored order and no weight is moved.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from atlas.errors import NotDescribed
from atlas.execution.named_axes import View
from atlas.grammar import shapes
from atlas.grammar.shapes import REST, Shape, atoms
from atlas.graph.graph import Graph, Weight
from atlas.graph.tensors import Row

AxisOrder = Mapping[str, tuple[str, ...]]
"""Axis -> its parts in their stored order, for axes whose parts are not stored in the vocabulary's order."""


def rotated_axis_order(graph: Graph, weight: Weight, layout: Shape) -> AxisOrder:
    """The rotated axes of a weight whose parts are stored in another order than the vocabulary's."""
    rotated = {
        step.over
        for block in graph.blocks
        for node in block.nodes
        if node.id == weight.node
        for step in node.steps
        if step.op == "rotate" and step.over is not None
    }
    found: dict[str, tuple[str, ...]] = {}
    stored = atoms(layout)
    for axis in rotated.intersection(atoms(weight.shape)):
        parts = graph.products.get(axis, ())
        if set(parts) <= set(stored):
            found[axis] = tuple(sorted(parts, key=stored.index))
    return {axis: order for axis, order in found.items() if order != graph.products.get(axis, ())}


def unpacking(row: Row, number: int, graph: Graph, order: AxisOrder, *, one_of: str | None = None) -> View:
    """What turns the stored tensor into the row's number-th weight, in its declared shape; a view where possible.

    Args:
        order: what `rotated_axis_order` returns for it.
        one_of: the axis of experts, for a view that turns the stored numbers of one expert into that expert's weight.

    Raises:
        NotDescribed: the weight is packed in a way that cannot be run yet.
    """
    weight, layout = row.weights[number], row.layouts[number]
    dims = graph.dims if one_of is None else {**graph.dims, one_of: 1}
    whole = weight.shape if one_of is None else tuple(group for group in weight.shape if group != (one_of,))
    part = _slicing(row, number, dims)
    if layout == whole:
        return part
    stored = atoms(layout)
    declared: list[str] = []
    for axis in atoms(whole if one_of is None or (one_of,) not in layout else weight.shape):
        declared += order.get(axis) or shapes.take_apart([axis], stored, graph.products)
    permutation = [stored.index(axis) for axis in declared]
    sizes = [dims[axis] for axis in stored]
    shape = [shapes.size(group, dims) for group in whole]
    return lambda tensor: part(tensor).reshape(sizes).permute(permutation).reshape(shape)


def is_as_declared(row: Row, number: int) -> bool:
    """Whether the row's number-th weight is the stored tensor, unchanged."""
    return row.holds.packed_along is None and row.layouts[number] == row.weights[number].shape


def _slicing(row: Row, number: int, dims: Mapping[str, int]) -> View:
    """What slices one weight out of a packed tensor; the identity where the tensor is that weight."""
    along, layout = row.holds.packed_along, row.holds.layout
    if along is None or layout is None:
        return lambda tensor: tensor
    group = layout[along]
    if group[-1] != REST:
        raise NotDescribed(f"{row.template.text}: the packing ({shapes.render(layout)}) cannot be run yet")
    lead = len(group) - 1  # axes that all packed weights share, before those of their own
    own = [shapes.size(each[along][lead:], dims) for each in row.layouts]
    sizes = [*(dims[axis] for axis in group[:lead]), sum(own)]
    begin, length = sum(own[:number]), own[number]

    def slice_out(tensor: Tensor) -> Tensor:
        part = torch.unflatten(tensor, along, sizes).narrow(along + lead, begin, length)
        return part.flatten(along, along + lead)

    return slice_out
