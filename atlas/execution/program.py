"""A block's steps as a program: each step is compiled once, each symbol is freed after the last step that reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch

from atlas.errors import SpecError
from atlas.execution.fused_attention import fused_attention, fusion_groups
from atlas.execution.kernels import compile_step
from atlas.execution.named_axes import split_axes
from atlas.execution.state import Kernel
from atlas.execution.weight_layout import AxisOrder
from atlas.grammar.shapes import atoms
from atlas.graph.graph import Block, Graph, Step


@dataclass(frozen=True, slots=True)
class Instruction:
    """One closure.

    Attributes:
        steps: the step it computes, or the steps that one call computes together; it sets the last one's symbol.
        reads: the names of its operands, symbols and weights.
        drops: the names that no later instruction reads.
    """

    steps: tuple[Step, ...]
    kernel: Kernel
    reads: tuple[str, ...]
    drops: tuple[str, ...]

    @property
    def last(self) -> Step:
        return self.steps[-1]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled block; `result` is the symbol of its result."""

    instructions: tuple[Instruction, ...]
    result: str

    @property
    def fused(self) -> bool:
        return any(len(instruction.steps) > 1 for instruction in self.instructions)


def compile_block(
    block: Block,
    graph: Graph,
    *,
    orders: Mapping[str, AxisOrder],
    dtype: torch.dtype,
    fuse: bool,
    names: Mapping[str, str],
    kept: Collection[str],
) -> Program:
    """Compile a block.

    Args:
        orders: weight id -> the stored order of its axes, where it differs from the declared one.
        dtype: of the activations.
        fuse: whether attention may be one call.
        names: node id -> the symbol of its result.
        kept: symbols that something outside the block reads.

    Raises:
        SpecError: a step combines operands with different axis orders, or cannot be run as it is written.
    """
    steps = [step for node in block.nodes for step in node.steps]
    names = names_in(block, names)
    found = _axis_orders(steps, graph, names, orders)
    result = block.nodes[-1].sets
    kept = {result, *kept}
    compiled: list[tuple[tuple[Step, ...], Kernel, tuple[str, ...]]] = []  # steps, closure, what it reads
    for group in fusion_groups(steps, graph, kept) if fuse else [(step,) for step in steps]:
        if len(group) > 1:
            kernel, operands = fused_attention(group), (*group[0].of, group[-1].of[1])
        else:
            kernel, operands = compile_step(group[0], graph, found[group[0].id], dtype), group[0].of
        read = [o.name for o in operands] + [o.chosen for o in operands if o.chosen is not None]
        compiled.append((group, kernel, tuple(names.get(name, name) for name in read)))
    last_use = {name: i for i, (group, _, reads) in enumerate(compiled) for name in (*reads, group[-1].sets)}
    drops: list[list[str]] = [[] for _ in compiled]
    for name in last_use.keys() - kept:
        drops[last_use[name]].append(name)
    return Program(
        tuple(Instruction(*each, tuple(d)) for each, d in zip(compiled, drops, strict=True)), result
    )


def names_in(block: Block, outside: Mapping[str, str]) -> Mapping[str, str]:
    """Node id -> the symbol of its result, inside a block."""
    return {**outside, **{node.id: node.sets for node in block.nodes}}


def symbols_read(block: Block, outside: Mapping[str, str]) -> set[str]:
    """The symbols a block reads that it does not set, `x` among them."""
    names = names_in(block, outside)
    found: set[str] = set()
    known: set[str] = set()
    for node in block.nodes:
        for step in node.steps:
            read = {
                word for o in step.of if o.weight is None for word in (o.name, o.chosen) if word is not None
            }
            found |= {names.get(name, name) for name in read} - known
            known.add(step.sets)
    return found


def _axis_orders(
    steps: list[Step], graph: Graph, names: Mapping[str, str], weights: Mapping[str, AxisOrder]
) -> dict[str, AxisOrder]:
    """Step id -> the axis order of its operands, propagated from the weights through the block.

    Raises:
        SpecError: two operands of a step have different axis orders, a step splits an axis whose order is not the
            vocabulary's, or the block's result has such an axis.
    """
    symbols: dict[str, AxisOrder] = {}
    found: dict[str, AxisOrder] = {}
    for step in steps:
        read = [names.get(operand.name, operand.name) for operand in step.of]
        orders = [weights.get(name) or symbols.get(name, {}) for name in read]
        merged = {axis: parts for order in orders for axis, parts in order.items()}
        split, _ = split_axes(step, graph)
        for operand, order, dimensions in zip(step.of, orders, split, strict=True):
            for axis in merged:
                whole = axis in (a for group in dimensions for a in group)
                if axis in atoms(operand.shape) and not (whole and order.get(axis) == merged[axis]):
                    raise SpecError(
                        f"{step.id}: the parts of {axis} are in the order ({' '.join(merged[axis])}) in one operand and in another "
                        f"order in {operand.name}; such weights cannot be run as they are stored"
                    )
        if step.op == "rename" and merged.keys() - set(atoms(step.shape)):
            raise SpecError(
                f"{step.id}: renames {', '.join(merged)}, whose parts are not in the vocabulary's order"
            )
        found[step.id] = merged
        symbols[step.sets] = {axis: parts for axis, parts in merged.items() if axis in atoms(step.shape)}
    if symbols[steps[-1].sets]:
        raise SpecError(f"{steps[-1].id}: the axes of the block's result are not in the vocabulary's order")
    return found
