"""The forward pass: every block of every layer in execution order, one block's weights in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from atlas.execution.program import compile_block, symbols_read
from atlas.execution.state import ExecutionState, KVCache
from atlas.execution.torch_errors import TORCH_ERRORS, run_error
from atlas.execution.weights import Weights
from atlas.graph.graph import Block, Graph, Stack

Observe = Callable[[str, Tensor], None]
"""Receives a step's address, `layers.0.attention.scores`, and its result."""

OnProgress = Callable[[str, int, int], None]
"""Receives what is under way, how much of it is done, and how much there is in all."""


class Runner:
    """A compiled graph. Each block is compiled once, for all layers that use it."""

    def __init__(
        self, graph: Graph, weights: Weights, *, dtype: torch.dtype, device: torch.device, fuse: bool
    ) -> None:
        self._graph, self._weights, self._device = graph, weights, device
        top_blocks = [part for part in graph.parts if isinstance(part, Block)]
        names = {node.id: node.sets for part in top_blocks for node in part.nodes}
        self._stack_inputs = {
            part.id: names.get(part.of, part.of) for part in graph.parts if isinstance(part, Stack)
        }
        # The top level keeps what a part's own blocks read, and what any later part reads.
        self._inside = [_top_level_reads(part, names) for part in graph.parts]
        reads = [
            inside | {self._stack_inputs[part.id]} if isinstance(part, Stack) else inside
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
        """Whether any block has its attention fused into one call."""
        return any(program.fused for program in self._programs.values())

    @torch.inference_mode()
    def __call__(
        self,
        tokens: Tensor,
        *,
        past: int = 0,
        cache: KVCache | None = None,
        observe: Observe | None = None,
        on_progress: OnProgress | None = None,
    ) -> Tensor:
        """The logits of a pass: batch × positions × vocab_size, float32.

        Args:
            tokens: ids: batch × positions, int64.
            past: number of positions that earlier passes have put into the cache.
            on_progress: called before each layer.

        Raises:
            RunError: a step failed. The error names its layer, node and step, and quotes torch.
        """
        model = self._graph.model
        state = ExecutionState(past, tokens.shape[1], self._device, model.rope, cache, model.ropes)
        positions = torch.arange(past, past + tokens.shape[1], device=self._device)
        symbols = {
            name: positions if given.value == "positions" else tokens.to(self._device)
            for name, given in self._graph.inputs.items()
        }
        for part, inside, later in zip(self._graph.parts, self._inside, self._later, strict=True):
            if isinstance(part, Block):
                name = self._run(part, None, symbols, state, observe)
            else:
                name = part.id
                symbols["x"] = symbols[self._stack_inputs[part.id]]
                _keep(symbols, {"x"} | inside | later)
                for layer in range(part.count):
                    if on_progress:
                        on_progress(part.id, layer, part.count)
                    for block in part.layer(layer):
                        symbols["x"] = symbols.pop(self._run(block, layer, symbols, state, observe))
                symbols[name] = symbols.pop("x")
            _keep(symbols, {name} | later)
        return symbols[name]

    def _run(
        self,
        block: Block,
        layer: int | None,
        symbols: dict[str, Tensor],
        state: ExecutionState,
        observe: Observe | None,
    ) -> str:
        """Run a block in one layer, and return the name of its result."""
        prefix = "" if layer is None else f"{block.stack}.{layer}."
        state.layer = layer
        where = f"{prefix}{block.id}: its weights"
        program = self._programs[block.id]
        try:
            symbols |= self._weights.load(block, layer)
            for instruction in program.instructions:
                where = f"{prefix}{instruction.last.id}"
                name = instruction.last.sets
                symbols[name] = instruction.kernel(state, *(symbols[read] for read in instruction.reads))
                if observe:
                    observe(where, symbols[name])
                if instruction is program.instructions[-1]:
                    self._weights.done()
                for unused in instruction.drops:
                    del symbols[unused]
        except TORCH_ERRORS as error:
            raise run_error(where, error) from error
        return program.result


def _top_level_reads(part: Block | Stack, names: Mapping[str, str]) -> set[str]:
    """The symbols of the top level that a part's blocks read."""
    blocks = [part] if isinstance(part, Block) else [block for slot in part.slots for block in slot]
    return set().union(*(symbols_read(block, names) for block in blocks)) - {"x"}


def _keep(symbols: dict[str, Tensor], names: set[str]) -> None:
    for name in symbols.keys() - names:
        del symbols[name]
