"""Rotary position embedding (Su et al., 2021; cites: rope-apply, rope-frequencies, rope-scaling).

The entries of a head form two-dimensional planes. Plane j of the vector at position t is rotated by the angle t · f(j),
so that an attention score depends only on the distance between two positions. Which entries form a plane is declared:
`halves` (entry i and entry i + width / 2) or `neighbours` (2i and 2i + 1). A checkpoint may store the rows in the other
order; they are rotated as they are stored, and no weight is rewritten. Where only a share of a head rotates, it is the
first entries, and the others stay as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.execution.named_axes import broadcast
from atlas.execution.rope_forms import depends_on_length, frequencies
from atlas.execution.state import ExecutionState, Kernel
from atlas.execution.weight_layout import AxisOrder
from atlas.grammar.shapes import atoms, render
from atlas.graph.graph import Graph, Step

PAIRS = ("halves", "neighbours")


def rotation(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    """The kernel of a `rotate` step, whose `by` is theta.

    Args:
        order: the stored order of the rotated axis's parts, where it differs from the vocabulary's.

    Raises:
        SpecError: the axis is not the last one; theta is not a number; or the entries that form a plane are not known.
    """
    axis, theta = step.over or "", step.by
    if step.shape[-1] != (axis,) or axis not in graph.dims:
        raise SpecError(f"{step.id}: rotate over {axis} of ({render(step.shape)}): expected the last axis")
    if isinstance(theta, bool) or not isinstance(theta, int | float):
        raise SpecError(f"{step.id}: rotate by {theta!r}: expected a number")
    if step.pairs not in PAIRS:
        raise SpecError(f"{step.id}: pairs = {step.pairs!r}, expected {' or '.join(PAIRS)}")
    width = graph.dims[axis]
    rotated = int(width * step.share)
    planes = rotated // 2
    neighbours = step.pairs == "neighbours"
    if axis in order:
        if rotated != width:
            raise SpecError(
                f"{step.id}: only a part of {axis} rotates, and its parts are stored in another order"
            )
        neighbours = not neighbours
    coordinate = -1 if neighbours else -2
    sizes = (planes, 2) if neighbours else (2, planes)
    lead = atoms(step.shape[:-1])
    spread = broadcast([["positions"], ["\0"]], [*lead, "\0"], graph.dims)

    def rotate(state: ExecutionState, x: Tensor) -> Tensor:
        cos, sin = map(spread, cos_sin(state, float(theta), rotated, step.rope))
        first, second = torch.unflatten(x[..., :rotated], -1, sizes).unbind(coordinate)  # … planes, each
        turned = torch.stack((first * cos - second * sin, first * sin + second * cos), coordinate).flatten(-2)
        return turned if rotated == width else torch.cat((turned, x[..., rotated:].to(turned.dtype)), -1)

    return rotate


def cos_sin(state: ExecutionState, theta: float, width: int, kind: str = "") -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position's angle in each plane: positions × planes, float32. Computed once per pass.

    Args:
        width: entries that rotate.
        kind: the kind of layer whose settings apply; the model's own if it has none of its own.
    """
    rope = state.ropes.get(kind, state.rope)
    key = theta, width, kind
    if key not in state.rotary_tables:
        length = state.keys if depends_on_length(rope) else 0
        by_plane, factor = frequencies(theta, width, rope, length)
        angles = torch.outer(torch.arange(state.past, state.keys, dtype=torch.float32), by_plane)
        tables = angles.cos() * factor, angles.sin() * factor
        state.rotary_tables[key] = tables[0].to(state.device), tables[1].to(state.device)
    return state.rotary_tables[key]
