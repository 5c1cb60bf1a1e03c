"""The forward pass: every block of every layer in execution order, one block's weights in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import torch
from torch import Tensor

from atlas.execution.failure import CAUSES, failed
from atlas.execution.layouts import Order
from atlas.execution.moment import Cache, Moment
from atlas.execution.program import compile_block, read_from_outside
from atlas.graph.graph import Block, Graph, Stack

Observe = Callable[[str, Tensor], None]
"""Receives a step's address, `layers.0.attention.scores`, and its result."""

Progress = Callable[[str, int, int], None]
"""Receives what is under way, how much of it is done, and how much of it there is."""


class Weights(Protocol):
    """Where weights come from.

    Attributes:
        orders: weight id -> how its axes lie, where not as declared.
    """

    orders: dict[str, Order]

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """A block's weights in one layer by id, on the device and in the dtype of the run."""
        ...

    def done(self) -> None:
        """The block has been computed.

        Raises:
            CheckpointError: its weights were not the file's all the while, so that nothing computed can be used.
        """
        ...


class Runner:
    """A graph, compiled: a block once, for all the layers in which it stands."""

    def __init__(
        self, graph: Graph, weights: Weights, *, dtype: torch.dtype, device: torch.device, fuse: bool
    ) -> None:
        self._graph, self._weights, self._device = graph, weights, device
        tops = [part for part in graph.parts if isinstance(part, Block)]
        names = {node.id: node.sets for part in tops for node in part.nodes}
        self._begins = {
            part.id: names.get(part.of, part.of) for part in graph.parts if isinstance(part, Stack)
        }
        # What the top level has to keep: what a part's blocks read, and what any later part does.
        self._inside = [_read_by(part, names) for part in graph.parts]
        reads = [
            inside | {self._begins[part.id]} if isinstance(part, Stack) else inside
            for part, inside in zip(graph.parts, self._inside, strict=True)
        ]
        self._later = [set().union(*reads[at + 1 :]) for at in range(len(reads))]
        self._programs = {
            block.id: compile_block(
                block,
                graph,
                orders=weights.orders,
                dtype=dtype,
                fuse=fuse,
                names=names,
                kept=set().union(*reads),
            )
            for block in graph.blocks
        }

    @property
    def fused(self) -> bool:
        """Whether attention is one call somewhere."""
        return any(program.fused for program in self._programs.values())

    @torch.inference_mode()
    def __call__(
        self,
        tokens: Tensor,
        *,
        past: int = 0,
        cache: Cache | None = None,
        observe: Observe | None = None,
        progress: Progress | None = None,
    ) -> Tensor:
        """The logits of a pass: batch × positions × vocab_size, float32.

        Args:
            tokens: ids: batch × positions, int64.
            past: positions that earlier passes have put into the cache.
            progress: told of each layer.

        Raises:
            RunError: a step failed; with its layer, node and what torch says.
        """
        moment = Moment(past, tokens.shape[1], self._device, self._graph.model.rope, cache)
        symbols = {"tokens": tokens.to(self._device)}
        for part, inside, later in zip(self._graph.parts, self._inside, self._later, strict=True):
            if isinstance(part, Block):
                name = self._run(part, None, symbols, moment, observe)
            else:
                name = part.id
                symbols["x"] = symbols[self._begins[part.id]]
                _keep(symbols, {"x"} | inside | later)
                for layer in range(part.count):
                    if progress:
                        progress(part.id, layer, part.count)
                    for block in part.layer(layer):
                        symbols["x"] = symbols.pop(self._run(block, layer, symbols, moment, observe))
                symbols[name] = symbols.pop("x")
            _keep(symbols, {name} | later)
        return symbols[name]

    def _run(
        self,
        block: Block,
        layer: int | None,
        symbols: dict[str, Tensor],
        moment: Moment,
        observe: Observe | None,
    ) -> str:
        """Run a block in one layer; the name of its result is given back."""
        stack = "" if layer is None else f"{block.stack}.{layer}."
        moment.layer = layer
        where = f"{stack}{block.id}: its weights"
        program = self._programs[block.id]
        try:
            symbols |= self._weights.load(block, layer)
            for instruction in program.instructions:
                where = f"{stack}{instruction.last.id}"
                made = instruction.last.sets
                symbols[made] = instruction.kernel(moment, *(symbols[name] for name in instruction.reads))
                if observe:
                    observe(where, symbols[made])
                if instruction is program.instructions[-1]:
                    self._weights.done()
                for name in instruction.drops:
                    del symbols[name]
        except CAUSES as error:
            raise failed(where, error) from error
        return program.result


def _read_by(part: Block | Stack, names: Mapping[str, str]) -> set[str]:
    """The top level's symbols that a part's blocks read."""
    blocks = [part] if isinstance(part, Block) else [block for slot in part.slots for block in slot]
    return set().union(*(read_from_outside(block, names) for block in blocks)) - {"x"}


def _keep(symbols: dict[str, Tensor], names: set[str]) -> None:
    for name in symbols.keys() - names:
        del symbols[name]
