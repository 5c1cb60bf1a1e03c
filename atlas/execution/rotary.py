"""The rotation of queries and keys (Su et al., 2021; cite: rope-apply).

A head's entries are planes of two coordinates. Plane j of the vector at position t turns by t·f(j), so that a score
depends on the distance of two positions alone. Meta's checkpoints keep a plane's coordinates side by side, the Hub's keep
all first coordinates before all second ones; either turns here as it lies, and no weight is rewritten.
"""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.execution.align import aligned
from atlas.execution.layouts import Order
from atlas.execution.moment import Kernel, Moment
from atlas.grammar.shapes import atoms, render
from atlas.graph.graph import Graph, Step


def rotation(step: Step, graph: Graph, order: Order) -> Kernel:
    """The kernel of a `rotate` step; its `by` is theta.

    Args:
        order: how the parts lie within the axis it runs over, where not as the vocabulary has them.

    Raises:
        SpecError: the axis is not the last, or no product of planes and two coordinates; or theta is no number.
    """
    axis, theta = step.over or "", step.by
    parts = order.get(axis) or graph.products.get(axis, ())
    if len(parts) != 2 or "two" not in parts or step.shape[-1] != (axis,):
        raise SpecError(
            f"{step.id}: rotate over {axis} of ({render(step.shape)}): expected a last axis of planes × two"
        )
    if not isinstance(theta, int | float):
        raise SpecError(f"{step.id}: rotate by {theta!r}: expected a number")
    plane = parts[0] if parts[1] == "two" else parts[1]
    planes, coordinate = graph.dims[plane], parts.index("two") - 2
    sizes = [graph.dims[part] for part in parts]
    spread = aligned([["positions"], [plane]], [*atoms(step.shape[:-1]), plane], graph.dims)

    def rotate(moment: Moment, x: Tensor) -> Tensor:
        cos, sin = map(spread, moment.turns(float(theta), planes))
        first, second = torch.unflatten(x, -1, sizes).unbind(coordinate)  # … planes, each
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), coordinate)
        return turned.flatten(-2)  # as x

    return rotate
