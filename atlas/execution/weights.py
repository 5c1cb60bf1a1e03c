"""Where a run's weights come from, and weights that stay in the device's memory between passes."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from atlas.execution.weight_layout import AxisOrder
from atlas.graph.graph import Block, Graph


class Weights(Protocol):
    """A source of weights.

    Attributes:
        orders: weight id -> the stored order of its axes' parts, where it differs from the declared one.
    """

    orders: dict[str, AxisOrder]

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """A block's weights in one layer by id, on the device and in the dtype of the run."""
        ...

    def done(self) -> None:
        """Called when the block has been computed.

        Raises:
            CheckpointError: a file changed meanwhile, so that nothing computed from it can be used.
        """
        ...


class ResidentWeights:
    """Weights that are loaded once per block and stay in memory: for more than one pass on a device with enough memory."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._blocks: dict[tuple[str, int | None], dict[str, Tensor]] = {}
        self.orders = weights.orders

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """See `Weights.load`."""
        place = block.id, layer
        if place not in self._blocks:
            self._blocks[place] = self._weights.load(block, layer)
        return dict(self._blocks[place])

    def done(self) -> None:
        """See `Weights.done`."""
        self._weights.done()


def fits_in_memory(graph: Graph, dtype: torch.dtype, device: torch.device) -> bool:
    """Whether all of a model's weights take at most half of the device's free memory.

    Never true of a CPU: there a checkpoint's weights are mapped from its files, and keeping a copy gains nothing.
    """
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    elif device.type == "mps":
        free = torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory()
    else:
        return False
    elements = sum(graph.size(weight) * graph.instances(weight) for weight in graph.weights.values())
    return elements * dtype.itemsize <= free // 2
