"""Rotary position embedding (Su et al., 2021; cites: rope-apply, rope-frequencies, rope-scaling).

The entries of a head form two-dimensional planes. Plane j of the vector at position t is rotated by the angle t · f(j),
so that an attention score depends only on the distance between two positions. Meta's checkpoints store the two
coordinates of a plane next to each other; the Hub's store all first coordinates before all second ones. Both are rotated
as they are stored, and no weight is rewritten.

Frequencies are computed in float32, in the order of Meta's `precompute_freqs_cis` and `apply_scaling`, with the model's
own factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from atlas.errors import SpecError
from atlas.execution.named_axes import broadcast
from atlas.execution.state import ExecutionState, Kernel
from atlas.execution.weight_layout import AxisOrder
from atlas.grammar.shapes import atoms, render
from atlas.graph.graph import Graph, Step
from atlas.resolution.model import Scalar


def rotation(step: Step, graph: Graph, order: AxisOrder) -> Kernel:
    """The kernel of a `rotate` step, whose `by` is theta.

    Args:
        order: the stored order of the rotated axis's parts, where it differs from the vocabulary's.

    Raises:
        SpecError: the axis is not the last one, or not a product of planes and two coordinates; or theta is not a number.
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
    spread = broadcast([["positions"], [plane]], [*atoms(step.shape[:-1]), plane], graph.dims)

    def rotate(state: ExecutionState, x: Tensor) -> Tensor:
        cos, sin = map(spread, cos_sin(state, float(theta), planes))
        first, second = torch.unflatten(x, -1, sizes).unbind(coordinate)  # … planes, each
        rotated = torch.stack((first * cos - second * sin, first * sin + second * cos), coordinate)
        return rotated.flatten(-2)  # as x

    return rotate


def cos_sin(state: ExecutionState, theta: float, planes: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position's angle in each plane: positions × planes, float32. Computed once per pass."""
    key = theta, planes
    if key not in state.rotary_tables:
        positions = torch.arange(state.past, state.keys, dtype=torch.float32)
        angles = torch.outer(positions, frequencies(theta, planes, state.rope))
        state.rotary_tables[key] = angles.cos().to(state.device), angles.sin().to(state.device)
    return state.rotary_tables[key]


def frequencies(theta: float, planes: int, rope: Mapping[str, Scalar]) -> Tensor:
    """The angle in radians by which each plane rotates from one position to the next: planes, float32.

    Args:
        rope: the RoPE scaling parameters; empty where RoPE is not scaled.
    """
    width = 2 * planes
    unscaled = 1.0 / theta ** (torch.arange(0, width, 2).float() / width)
    return _scaled(unscaled, rope) if rope else unscaled


def _scaled(unscaled: Tensor, rope: Mapping[str, Scalar]) -> Tensor:
    """The scaling `llama3`: low frequencies are divided by `factor`, high ones kept, those between interpolated."""
    if rope.get("rope_type") != "llama3":
        raise SpecError(f"the RoPE scaling {rope.get('rope_type')!r} is not described")
    factor, low, high, original = (
        float(rope[name])
        for name in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
    )
    wavelength = 2 * math.pi / unscaled
    slowed = torch.where(wavelength > original / low, unscaled / factor, unscaled)
    share = (original / wavelength - low) / (high - low)
    between = (wavelength >= original / high) & (wavelength <= original / low)
    return torch.where(between, (1 - share) * unscaled / factor + share * unscaled, slowed)
