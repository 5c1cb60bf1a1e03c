"""Seeded random weights for a model whose checkpoint is not at hand: they show shapes and dtypes, not text.

Drawing eight thousand million normal numbers would take longer than the pass they are for. So one block is drawn,
repeated to the length of the model's largest weight, and each weight of each layer is a view that begins somewhere else
in it. The block's length is a prime, so that no two rows of a matrix begin at the same place of it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.execution.failure import CAUSES, failed
from atlas.execution.layouts import Order
from atlas.grammar.shapes import size
from atlas.graph.graph import Block, Graph, Weight

DRAWN = 4_194_301
"""How many numbers are drawn: a prime."""

SPREAD = 0.02
"""Their standard deviation, as most models are initialised: a product over a few thousand keeps the size of its input."""

_LINE = 32
"""Weights begin at multiples of this, for the processor's sake; the block has 131,071 such places, again a prime."""

_STRIDE = 32_749
"""From one weight's place to the next one's."""


class RandomWeights:
    """Weights drawn from a seed.

    Attributes:
        orders: none: every axis lies as the vocabulary has it.
        source: the seed.
        notes: what was drawn, and what it can show.
    """

    def __init__(self, graph: Graph, *, dtype: torch.dtype, device: torch.device, seed: int) -> None:
        self._graph = graph
        self.dtype = dtype
        self.source = f"seed {seed}"
        self.orders: dict[str, Order] = {}
        self.notes = (
            f"random weights: one block of {DRAWN:,} normal numbers (seed {seed}, standard deviation {SPREAD}), "
            "used again for every weight from another offset on; they confirm shapes and dtypes, not text",
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
            drawn = torch.randn(DRAWN, generator=torch.Generator().manual_seed(seed)) * SPREAD
            times = -(-(largest + DRAWN) // DRAWN)
            self._store = drawn.to(device, dtype).expand(times, DRAWN).reshape(-1)
        except CAUSES as error:
            raise failed("the random weights", error) from error

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """As `atlas.execution.walk.Weights` has it."""
        return {weight.id: self._weight(weight, layer) for node in block.nodes for weight in node.weights}

    def done(self) -> None:
        """As `atlas.execution.walk.Weights` has it: nothing was read."""

    def _weight(self, weight: Weight, layer: int | None) -> Tensor:
        weight = self._graph.tied_to(weight) or weight
        number = self._numbers[weight.id] + len(self._numbers) * (layer or 0)
        begin = number * _STRIDE % (DRAWN // _LINE) * _LINE
        shape = [size(group, self._graph.dims) for group in weight.shape]
        view = self._store[begin : begin + self._graph.size(weight)].view(shape)
        return view + 1 if weight.id in self._gains else view
