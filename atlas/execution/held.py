"""Weights kept from their first use on: for a device with room for all of them, and more than one pass to make."""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.execution.walk import Weights
from atlas.graph.graph import Block, Graph


class Held:
    """The same weights, each block's asked for once."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._blocks: dict[tuple[str, int | None], dict[str, Tensor]] = {}
        self.orders = weights.orders

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """As `atlas.execution.walk.Weights` has it."""
        place = block.id, layer
        if place not in self._blocks:
            self._blocks[place] = self._weights.load(block, layer)
        return dict(self._blocks[place])

    def done(self) -> None:
        """As `atlas.execution.walk.Weights` has it."""
        self._weights.done()


def fit(graph: Graph, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether all of a model's weights take at most half of the device's free memory.

    Never on a CPU, where a checkpoint's weights are mapped from its files and need not be kept.
    """
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    elif device.type == "mps":
        free = torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    else:
        return False
    numbers = sum(graph.size(weight) * graph.instances(weight) for weight in graph.weights.values())
    return numbers * dtype.itemsize <= free // 2
