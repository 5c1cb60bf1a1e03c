"""Seeded random weights for a model without a checkpoint: they confirm shapes and dtypes, not text.

Drawing eight billion normal numbers would take longer than the forward pass. So one block of numbers is drawn and repeated
to the length of the model's largest weight, and each weight of each layer is a view that starts at another offset.
The block's length is a prime, so that no two rows of a matrix start at the same offset in it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.execution.torch_errors import TORCH_ERRORS, run_error
from atlas.execution.weight_layout import AxisOrder
from atlas.grammar.shapes import size
from atlas.graph.graph import Block, Graph, Weight

DRAWN = 4_194_301
"""How many numbers are drawn: a prime."""

STANDARD_DEVIATION = 0.02
"""Their standard deviation, a common initialisation: a product over a few thousand inputs keeps the magnitude of its input."""

_ALIGNMENT = 32
"""Weights start at multiples of this, which is faster to read; the block has 131,071 such offsets, again a prime."""

_STRIDE = 32_749
"""From one weight's offset to the next one's, in units of the alignment."""


class RandomWeights:
    """Weights drawn from a seed.

    Attributes:
        orders: empty: every axis is in the vocabulary's order.
        source: the seed.
        notes: what was drawn, and what it can confirm.
        warnings: none.
    """

    def __init__(self, graph: Graph, *, dtype: torch.dtype, device: torch.device, seed: int) -> None:
        self._graph = graph
        self.dtype = dtype
        self.source = f"seed {seed}"
        self.orders: dict[str, AxisOrder] = {}
        self.warnings: tuple[str, ...] = ()
        self.notes = (
            f"random weights: one block of {DRAWN:,} normal numbers (seed {seed}, standard deviation {STANDARD_DEVIATION}), "
            "reused for every weight from another offset; they confirm shapes and dtypes, not text",
        )
        self._gains = {
            weight.id
            for block in graph.blocks
            for node in block.nodes
            for step in node.steps
            if step.op == "mul"
            for weight in step.weights
        }
        self._numbers = {weight: n for n, weight in enumerate(graph.weights)}
        largest = max(graph.size(weight) for weight in graph.weights.values())
        try:
            drawn = torch.randn(DRAWN, generator=torch.Generator().manual_seed(seed)) * STANDARD_DEVIATION
            times = -(-(largest + DRAWN) // DRAWN)
            self._store = drawn.to(device, dtype).expand(times, DRAWN).reshape(-1)
        except TORCH_ERRORS as error:
            raise run_error("the random weights", error) from error

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """See `atlas.execution.weights.Weights`."""
        return {weight.id: self._weight(weight, layer) for node in block.nodes for weight in node.weights}

    def done(self) -> None:
        """Nothing was read, so nothing can have changed."""

    def _weight(self, weight: Weight, layer: int | None) -> Tensor:
        weight = self._graph.tied_to(weight) or weight
        number = self._numbers[weight.id] + len(self._numbers) * (layer or 0)
        begin = number * _STRIDE % (DRAWN // _ALIGNMENT) * _ALIGNMENT
        shape = [size(group, self._graph.dims) for group in weight.shape]
        view = self._store[begin : begin + self._graph.size(weight)].view(shape)
        return view + 1 if weight.id in self._gains else view
