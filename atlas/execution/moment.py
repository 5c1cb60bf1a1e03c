"""Where a pass stands: what a kernel needs besides its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import torch
from torch import Tensor

from atlas.execution.frequencies import frequencies
from atlas.resolution.model import Scalar

Kernel = Callable[..., Tensor]
"""A compiled step: the moment, then its operands -> its result."""


class Cache:
    """Keys and values of the positions read so far, for every layer, each allocated once at its full length."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._kept: dict[tuple[int | None, str], Tensor] = {}

    def extend(self, place: tuple[int | None, str], fresh: Tensor, along: int, past: int) -> Tensor:
        """Keep this pass's positions after the `past` ones; all of them are given back.

        Args:
            place: layer and symbol.
            along: the dimension of the positions.
        """
        if place not in self._kept:
            shape = list(fresh.shape)
            shape[along] = self.capacity
            self._kept[place] = fresh.new_empty(shape)
        kept, count = self._kept[place], fresh.shape[along]
        kept.narrow(along, past, count).copy_(fresh)
        return kept.narrow(along, 0, past + count)


class Moment:
    """One pass over some positions of the sequences, and the layer it has come to.

    Args:
        past: positions that earlier passes read.
        positions: those of this pass.
        rope: the model's parameters of scaled rotary positions.
        cache: None where this pass is the only one.
    """

    def __init__(
        self, past: int, positions: int, device: torch.device, rope: Mapping[str, Scalar], cache: Cache | None
    ) -> None:
        self.past, self.positions, self.keys = past, positions, past + positions
        self.device = device
        self.cache = cache
        self.layer: int | None = None
        self._rope = rope
        self._turns: dict[tuple[float, int], tuple[Tensor, Tensor]] = {}

    def turns(self, theta: float, planes: int) -> tuple[Tensor, Tensor]:
        """Cosine and sine of each position's angle in each plane: positions × planes, float32."""
        if (theta, planes) not in self._turns:
            positions = torch.arange(self.past, self.keys, dtype=torch.float32)
            angles = torch.outer(positions, frequencies(theta, planes, self._rope))
            self._turns[theta, planes] = angles.cos().to(self.device), angles.sin().to(self.device)
        return self._turns[theta, planes]

    @cached_property
    def hidden(self) -> Tensor:
        """Which keys each position must not see, those after it: positions × keys, bool."""
        positions = torch.arange(self.past, self.keys, device=self.device)
        return torch.arange(self.keys, device=self.device) > positions[:, None]
