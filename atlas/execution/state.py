"""The state of one forward pass: what a kernel reads besides its operands, and the KV cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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
        self.states: dict[tuple[int | None, str], Tensor] = {}
        """Layer and symbol -> what a recurrent step keeps."""

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
        ropes: kind of layer -> its scaling parameters, where layers differ.
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
        ropes: Mapping[str, Mapping[str, Scalar]] | None = None,
    ) -> None:
        self.past, self.positions, self.keys = past, positions, past + positions
        self.device = device
        self.rope = rope
        self.ropes = ropes or {}
        self.cache = cache
        self.layer: int | None = None
        self.rotary_tables: dict[tuple[object, ...], tuple[Tensor, Tensor]] = {}
        self._hidden: dict[int, Tensor] = {}

    @property
    def causal_mask(self) -> Tensor:
        """True where a key comes after the position and must not be seen: positions × keys, bool."""
        return self.hidden(0)

    def hidden(self, window: int) -> Tensor:
        """True where a key must not be seen: it comes after the position, or before its window. positions × keys, bool.

        Args:
            window: how many positions are seen, the position itself included; 0 for all earlier ones.
        """
        if window not in self._hidden:
            positions = torch.arange(self.past, self.keys, device=self.device)[:, None]
            keys = torch.arange(self.keys, device=self.device)
            after = keys > positions
            self._hidden[window] = after | (keys <= positions - window) if window else after
        return self._hidden[window]

    def kept(self, symbol: str) -> Tensor | None:
        """What a recurrent step of this layer kept at the end of the last pass; None in the first one."""
        return None if self.cache is None else self.cache.states.get((self.layer, symbol))

    def keep(self, symbol: str, value: Tensor) -> None:
        """Keep a state for the next pass, if there may be one."""
        if self.cache is not None:
            self.cache.states[self.layer, symbol] = value
