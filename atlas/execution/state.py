"""The state of one forward pass: what a kernel reads besides its operands, and the KV cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from atlas.resolution.model import Scalar

Kernel = Callable[..., Tensor]
"""A compiled step: called with the execution state and the step's operands, it returns the step's result."""


class KVCache:
    """Keys and values of earlier positions for every layer. Each buffer is allocated once, at full length."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._buffers: dict[tuple[int | None, str], Tensor] = {}

    def extend(self, place: tuple[int | None, str], fresh: Tensor, along: int, past: int) -> Tensor:
        """Store this pass's positions after the `past` earlier ones, and return all of them.

        Args:
            place: layer and symbol.
            along: the dimension of the positions.
        """
        if place not in self._buffers:
            shape = list(fresh.shape)
            shape[along] = self.capacity
            self._buffers[place] = fresh.new_empty(shape)
        buffer, count = self._buffers[place], fresh.shape[along]
        buffer.narrow(along, past, count).copy_(fresh)
        return buffer.narrow(along, 0, past + count)


class ExecutionState:
    """One pass over some positions of the sequences, and the layer that is being executed.

    Args:
        past: number of positions that earlier passes computed.
        positions: number of positions of this pass.
        rope: the model's RoPE scaling parameters; empty where RoPE is not scaled.
        cache: None where this is the only pass.

    Attributes:
        rotary_tables: cosine and sine tables of this pass, filled by `atlas.execution.rotary`.
    """

    def __init__(
        self,
        past: int,
        positions: int,
        device: torch.device,
        rope: Mapping[str, Scalar],
        cache: KVCache | None,
    ) -> None:
        self.past, self.positions, self.keys = past, positions, past + positions
        self.device = device
        self.rope = rope
        self.cache = cache
        self.layer: int | None = None
        self.rotary_tables: dict[tuple[float, int], tuple[Tensor, Tensor]] = {}

    @cached_property
    def causal_mask(self) -> Tensor:
        """True where a key comes after the position and must not be seen: positions × keys, bool."""
        positions = torch.arange(self.past, self.keys, device=self.device)
        return torch.arange(self.keys, device=self.device) > positions[:, None]
