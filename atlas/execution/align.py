"""Tensors by the names of their axes: dimensions taken apart, put together, and lined up for broadcasting.

Everything is worked out from names when a step is compiled; what is left to do at run time is a view, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from atlas.grammar import shapes
from atlas.grammar.shapes import Shape, atoms
from atlas.graph.graph import Graph, Step

Apart = Sequence[Sequence[str]]
"""A shape whose axes are taken apart as far as a step needs: for each dimension its axes."""

View = Callable[[Tensor], Tensor]


def taken_apart(step: Step, graph: Graph) -> tuple[list[Apart], Apart]:
    """Each operand's and the result's dimensions, products opened where another of them names a part."""
    named = {axis for shape in (step.shape, *(o.shape for o in step.of)) for axis in atoms(shape)}

    def apart(shape: Shape) -> Apart:
        return [shapes.take_apart(group, named, graph.products) for group in shape]

    return [apart(operand.shape) for operand in step.of], apart(step.shape)


def opened(apart: Apart, dims: Mapping[str, int]) -> View:
    """Every dimension of several axes as that many dimensions; one axis of each may be without a size."""
    wide = [(i, [dims.get(axis, -1) for axis in group]) for i, group in enumerate(apart) if len(group) > 1]

    def view(x: Tensor) -> Tensor:
        for i, sizes in reversed(wide):  # from the back, so that earlier dimensions keep their place
            x = torch.unflatten(x, i, sizes)
        return x

    return view


def closed(apart: Apart) -> View:
    """The inverse of `opened`."""
    wide = [(i, i + len(group) - 1) for i, group in enumerate(apart) if len(group) > 1]

    def view(x: Tensor) -> Tensor:
        for first, last in wide:  # from the front, where dimensions are already put together
            x = x.flatten(first, last)
        return x

    return view


def aligned(apart: Apart, target: Sequence[str], dims: Mapping[str, int]) -> View:
    """Axes in the target's order, with a dimension of 1 for each that is missing: broadcasting by name."""
    mine = atoms(map(tuple, apart))
    open_up = opened(apart, dims)
    if list(target[-len(mine) :]) == mine:
        return open_up  # torch broadcasts trailing dimensions by itself
    order = [mine.index(axis) for axis in target if axis in mine]
    index = tuple(slice(None) if axis in mine else None for axis in target)
    return lambda x: open_up(x).permute(order)[index]
