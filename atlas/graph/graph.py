"""A model's forward pass as bound steps: what the accountant, the tracer, the verifier and the runner all read.

`atlas.graph.binding` makes one from an architecture and a model. Every name in it is resolved: a step's operand is a symbol with
its axes or a declared weight, an axis is renamed where its node or stack renames it. Sizes are kept apart, in `dims`, so
that a graph costs the same for 2 layers as for 126: a block is bound once and knows in which layers it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from atlas import spec
from atlas.grammar import shapes
from atlas.grammar.shapes import Shape
from atlas.resolution.model import Model, Scalar


@dataclass(frozen=True, slots=True)
class Weight:
    """A declared weight, one for each layer its block stands in.

    Attributes:
        id: node and weight, `attention.wq`, `norm.weight`; what conventions name.
        component: the id users see: the node's, where the weight is the only one it is known by (`norm`).
        shape: torch order, out before in.
    """

    id: str
    component: str
    node: str
    shape: Shape
    words: spec.Weight


@dataclass(frozen=True, slots=True)
class Operand:
    """What a step reads: a symbol an earlier step set, or a weight.

    Attributes:
        name: `x`, `attention.scores`, or a weight's id.
        chosen: the symbol whose indices choose along an axis of it (`w1[chosen]`); the shape is that after choosing.
        instead_of: the axis chosen along.
    """

    name: str
    shape: Shape
    weight: Weight | None = None
    chosen: str | None = None
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operation: what the tracer prints and the runner executes.

    Attributes:
        id: node and step, `attention.q_rotated`.
        sets: node and symbol, `attention.q`: an optional step sets an earlier step's symbol anew.
        dtype: of the result: a safetensors code, or `A`, the activations' dtype.
        computed_in: of the arithmetic, likewise.
    """

    id: str
    node: str
    op: str
    of: tuple[Operand, ...]
    sets: str
    shape: Shape
    dtype: str
    computed_in: str
    over: str | None
    by: Scalar | None
    words: spec.Step = field(compare=False)

    @property
    def weights(self) -> tuple[Weight, ...]:
        return tuple(operand.weight for operand in self.of if operand.weight is not None)

    @property
    def component(self) -> str:
        """The component a step is accounted to: that of its weight, else its node."""
        return self.weights[0].component if self.weights else self.node

    def taken_apart(self, products: Mapping[str, tuple[str, ...]]) -> tuple[list[list[str]], list[str]]:
        """The axes of each operand and of the result, products opened where another of them names a part."""
        operands = [shapes.atoms(operand.shape) for operand in self.of]
        result = shapes.atoms(self.shape)
        named = {axis for axes in (*operands, result) for axis in axes}
        opened = [shapes.take_apart(axes, named, products) for axes in operands]
        return opened, shapes.take_apart(result, named, products)


@dataclass(frozen=True, slots=True)
class Node:
    """A component at its place in the graph.

    Attributes:
        of: the symbols it receives, in the order of the component's ports.
        sets: the symbol that holds its result.
    """

    id: str
    component: spec.Component
    of: tuple[Operand, ...]
    steps: tuple[Step, ...]
    weights: tuple[Weight, ...]
    sets: str
    shape: Shape


@dataclass(frozen=True, slots=True)
class Block:
    """Nodes that run in turn; `layers` is where they stand, or None at the top level, where they run once."""

    id: str
    nodes: tuple[Node, ...]
    stack: str | None = None
    layers: Sequence[int] | None = None

    @property
    def instances(self) -> int:
        return 1 if self.layers is None else len(self.layers)


@dataclass(frozen=True, slots=True)
class Stack:
    """Layers in turn.

    Attributes:
        index: the placeholder that counts them in a tensor's name.
        of: the symbol the first layer receives as `x`.
        slots: for each place in a layer the blocks that may stand there; exactly one of them does.
    """

    id: str
    index: str
    count: int
    of: str
    slots: tuple[tuple[Block, ...], ...]
    shape: Shape

    def layer(self, i: int) -> Iterator[Block]:
        """The blocks of layer i in execution order."""
        for slot in self.slots:
            yield next(block for block in slot if block.layers is not None and i in block.layers)


@dataclass(frozen=True)
class Graph:
    """A model, bound.

    Attributes:
        dims: the size of every axis that has one; batch, positions and keys have none until a pass is asked for.
        inputs: symbol -> its words and shape.
        parts: the top level in execution order: blocks of single nodes, and stacks.
    """

    model: Model
    architecture: spec.Architecture
    axes: Mapping[str, spec.Axis]
    dims: Mapping[str, int]
    inputs: Mapping[str, spec.Input]
    parts: tuple[Block | Stack, ...]

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every block once, in the order of its first appearance."""
        found: list[Block] = []
        for part in self.parts:
            if isinstance(part, Block):
                found.append(part)
            else:
                found += [block for slot in part.slots for block in slot if block.instances]
        return tuple(found)

    def walk(self) -> Iterator[tuple[int | None, Block]]:
        """Every block of every layer in execution order."""
        for part in self.parts:
            if isinstance(part, Block):
                yield None, part
            else:
                for i in range(part.count):
                    for block in part.layer(i):
                        yield i, block

    @cached_property
    def weights(self) -> Mapping[str, Weight]:
        """id -> weight. A weight that stands in several kinds of block is one."""
        return {weight.id: weight for block in self.blocks for node in block.nodes for weight in node.weights}

    def times(self, node: str) -> int:
        """In how many layers a node stands."""
        return sum(block.instances for block in self.blocks if any(each.id == node for each in block.nodes))

    def instances(self, weight: Weight) -> int:
        """In how many layers it stands."""
        return self.times(weight.node)

    def size(self, weight: Weight) -> int:
        """Its parameters, in one layer."""
        return shapes.size(shapes.atoms(weight.shape), self.dims)

    def tied_to(self, weight: Weight) -> Weight | None:
        """The weight whose matrix this one is, where the model ties them."""
        other = self.architecture.ties.get(weight.id) if self.model.flags.get("tied") else None
        return self.weights[other] if other else None

    @cached_property
    def products(self) -> Mapping[str, tuple[str, ...]]:
        """For each axis that is a product, the axes it is made of."""
        return {name: tuple(axis.parts.split()) for name, axis in self.axes.items() if axis.parts}

    def multiplied(self, step: Step) -> list[str]:
        """Every axis a matrix product runs over, once: the product of their sizes is its multiply-adds."""
        operands, result = step.taken_apart(self.products)
        return list(dict.fromkeys(axis for axes in (*operands, result) for axis in axes))
