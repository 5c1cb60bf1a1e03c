"""A block's steps as a program: each compiled once, each symbol let go after the step that reads it last."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import torch

from atlas.errors import SpecError
from atlas.execution.align import taken_apart
from atlas.execution.attention import attention, grouped
from atlas.execution.kernels import compile_step
from atlas.execution.layouts import Order
from atlas.execution.moment import Kernel
from atlas.grammar.shapes import atoms
from atlas.graph.graph import Block, Graph, Step


@dataclass(frozen=True, slots=True)
class Instruction:
    """One closure.

    Attributes:
        steps: what it computes: one step, or several that one call does together, whose last result it sets.
        reads: the names of its operands, symbols and weights.
        drops: the names that nothing reads after it.
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
    """A block, compiled; `result` is the symbol it hands on."""

    instructions: tuple[Instruction, ...]
    result: str

    @property
    def fused(self) -> bool:
        return any(len(instruction.steps) > 1 for instruction in self.instructions)


def compile_block(
    block: Block,
    graph: Graph,
    *,
    orders: Mapping[str, Order],
    dtype: torch.dtype,
    fuse: bool,
    names: Mapping[str, str],
    kept: Collection[str],
) -> Program:
    """A block's program.

    Args:
        orders: weight id -> how its axes lie, where not as declared.
        dtype: of the activations.
        fuse: whether attention may be one call.
        names: what a node's id stands for: the symbol that holds its result.
        kept: symbols that something outside the block reads, now or later.

    Raises:
        SpecError: axes that lie in different orders meet, or a step is written in a way that cannot be run.
    """
    steps = [step for node in block.nodes for step in node.steps]
    names = names_in(block, names)
    found = _orders(steps, graph, names, orders)
    result = block.nodes[-1].sets
    kept = {result, *kept}
    compiled: list[tuple[tuple[Step, ...], Kernel, tuple[str, ...]]] = []  # steps, closure, what it reads
    for group in grouped(steps, graph, kept) if fuse else [(step,) for step in steps]:
        if len(group) > 1:
            kernel, operands = attention(group), (*group[0].of, group[-1].of[1])
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
    """What a node's id stands for inside a block."""
    return {**outside, **{node.id: node.sets for node in block.nodes}}


def read_from_outside(block: Block, outside: Mapping[str, str]) -> set[str]:
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


def _orders(
    steps: list[Step], graph: Graph, names: Mapping[str, str], weights: Mapping[str, Order]
) -> dict[str, Order]:
    """How the axes of each step's operands lie, followed from the weights through the block.

    Raises:
        SpecError: two operands' axes lie differently, one is taken apart that does not lie as the vocabulary has it,
            or one would leave the block.
    """
    symbols: dict[str, Order] = {}
    found: dict[str, Order] = {}
    for step in steps:
        read = [names.get(operand.name, operand.name) for operand in step.of]
        lies = [weights.get(name) or symbols.get(name, {}) for name in read]
        merged = {axis: parts for order in lies for axis, parts in order.items()}
        opened, _ = taken_apart(step, graph)
        for operand, order, apart in zip(step.of, lies, opened, strict=True):
            for axis in merged:
                whole = axis in (a for group in apart for a in group)
                if axis in atoms(operand.shape) and not (whole and order.get(axis) == merged[axis]):
                    raise SpecError(
                        f"{step.id}: the parts of {axis} lie as ({' '.join(merged[axis])}) in one operand and "
                        f"otherwise in {operand.name}; such weights cannot be run as they are stored"
                    )
        if step.op == "rename" and merged.keys() - set(atoms(step.shape)):
            raise SpecError(
                f"{step.id}: renames {', '.join(merged)}, whose parts do not lie as the vocabulary has them"
            )
        found[step.id] = merged
        symbols[step.sets] = {axis: parts for axis, parts in merged.items() if axis in atoms(step.shape)}
    if symbols[steps[-1].sets]:
        raise SpecError(f"{steps[-1].id}: its axes do not lie as the vocabulary has them when the block ends")
    return found
