"""Tensor dimensions by the names of their axes: split into several, merged into one, and aligned for broadcasting.

Names are resolved when a step is compiled. At run time only a view is left, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from atlas.grammar import shapes
from atlas.grammar.shapes import Shape, atoms
from atlas.graph.graph import Graph, Step

SplitShape = Sequence[Sequence[str]]
"""A shape whose product axes are split as far as a step needs: the axes of each dimension."""

View = Callable[[Tensor], Tensor]


def split_axes(step: Step, graph: Graph) -> tuple[list[SplitShape], SplitShape]:
    """The dimensions of each operand and of the result. A product axis is split where another of them names its part."""
    named = {axis for shape in (step.shape, *(o.shape for o in step.of)) for axis in atoms(shape)}

    def split(shape: Shape) -> SplitShape:
        return [shapes.take_apart(group, named, graph.products) for group in shape]

    return [split(operand.shape) for operand in step.of], split(step.shape)


def unflatten(split: SplitShape, dims: Mapping[str, int]) -> View:
    """A view that gives each axis a dimension of its own. One axis of each group may have no known size."""
    wide = [(i, [dims.get(axis, -1) for axis in group]) for i, group in enumerate(split) if len(group) > 1]

    def view(x: Tensor) -> Tensor:
        for i, sizes in reversed(wide):  # from the back, so that earlier dimensions keep their place
            x = torch.unflatten(x, i, sizes)
        return x

    return view


def flatten(split: SplitShape) -> View:
    """The inverse of `unflatten`."""
    wide = [(i, i + len(group) - 1) for i, group in enumerate(split) if len(group) > 1]

    def view(x: Tensor) -> Tensor:
        for first, last in wide:  # from the front, where dimensions are already merged
            x = x.flatten(first, last)
        return x

    return view


def broadcast(split: SplitShape, target: Sequence[str], dims: Mapping[str, int]) -> View:
    """A view whose axes are in the target's order, with a dimension of size 1 for each that is missing."""
    own = atoms(map(tuple, split))
    open_up = unflatten(split, dims)
    if list(target[-len(own) :]) == own:
        return open_up  # torch broadcasts trailing dimensions by itself
    order = [own.index(axis) for axis in target if axis in own]
    index = tuple(slice(None) if axis in own else None for axis in target)
    return lambda x: open_up(x).permute(order)[index]
