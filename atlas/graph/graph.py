"""A model's forward pass as bound steps. `params`, `memory`, `flops`, `trace`, `verify` and `run` all read this graph.

`atlas.graph.binding` creates it from an architecture and a model. All names are resolved: an operand is a symbol with axes
or a declared weight, and axes have the names that their node or stack gives them. A block is bound once and lists its
layers, and sizes are separate in `dims`, so a graph costs the same for 2 layers as for 126.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from atlas import spec
from atlas.grammar import shapes
from atlas.grammar.shapes import Shape
from atlas.resolution.model import Model, Scalar


@dataclass(frozen=True, slots=True)
class Weight:
    """A declared weight. There is one in each layer of its block.

    Attributes:
        id: node and weight, `attention.wq`, `norm.weight`; conventions refer to it.
        component: the id for users: the node's id for a weight called `weight` (`norm`), else `id`.
        shape: torch order, out before in.
    """

    id: str
    component: str
    node: str
    shape: Shape
    words: spec.Weight


@dataclass(frozen=True, slots=True)
class Operand:
    """An input of a step: a symbol that an earlier step set, or a weight.

    Attributes:
        name: `x`, `attention.scores`, or a weight's id.
        chosen: the symbol with the indices that select along an axis (`w1[chosen]`); `shape` is the shape after it.
        instead_of: the axis that is selected along.
    """

    name: str
    shape: Shape
    weight: Weight | None = None
    chosen: str | None = None
    instead_of: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One operation. `trace` prints it and `run` executes it.

    Attributes:
        id: node and step, `attention.q_rotated`.
        sets: node and symbol, `attention.q`. An optional step sets the symbol of an earlier step again.
        dtype: of the result: a safetensors code, or `A` for the activations' dtype.
        computed_in: dtype of the arithmetic, likewise.
        share: of `rotate`: the share of the entries that rotate.
        pairs: of `rotate`: `halves` or `neighbours`, the entries that form a plane.
        rope: of `rotate`: the kind of layer whose settings in `Model.ropes` apply; those of `Model.rope` if empty.
        state: the shape of what the step keeps between passes in place of keys and values.
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
    share: float = 1.0
    pairs: str = "halves"
    rope: str = ""
    state: Shape | None = None

    @property
    def weights(self) -> tuple[Weight, ...]:
        return tuple(operand.weight for operand in self.of if operand.weight is not None)

    @property
    def component(self) -> str:
        """The component that the step's cost is counted for: its weight's component, else its node."""
        return self.weights[0].component if self.weights else self.node

    def taken_apart(self, products: Mapping[str, tuple[str, ...]]) -> tuple[list[list[str]], list[str]]:
        """The axes of each operand and of the result. A product axis is split if another one has one of its parts."""
        operands = [shapes.atoms(operand.shape) for operand in self.of]
        result = shapes.atoms(self.shape)
        named = {axis for axes in (*operands, result) for axis in axes}
        opened = [shapes.take_apart(axes, named, products) for axes in operands]
        return opened, shapes.take_apart(result, named, products)


@dataclass(frozen=True, slots=True)
class Node:
    """A component at one place in the graph.

    Attributes:
        of: the input symbols, in the order of the component's ports.
        sets: the symbol of its result.
        declared: the ids of all weights that its component may have, those that are absent here included.
        params: the component's parameters here; one that nothing needs may have no value, and raises ConfigError when read.
    """

    id: str
    component: spec.Component
    of: tuple[Operand, ...]
    steps: tuple[Step, ...]
    weights: tuple[Weight, ...]
    sets: str
    shape: Shape
    declared: frozenset[str] = frozenset()
    params: Mapping[str, Scalar] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive nodes. `layers` lists the layers that contain them; None at the top level, where they run once."""

    id: str
    nodes: tuple[Node, ...]
    stack: str | None = None
    layers: Sequence[int] | None = None

    @property
    def instances(self) -> int:
        return 1 if self.layers is None else len(self.layers)


@dataclass(frozen=True, slots=True)
class Stack:
    """Consecutive layers.

    Attributes:
        index: the placeholder for the layer in a tensor name.
        of: the symbol that is `x` in the first layer.
        slots: for each position in a layer, the possible blocks; each layer has exactly one of them.
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
    """A model bound to its architecture.

    Attributes:
        dims: the size of every axis that has one; batch, positions and keys get theirs with a pass.
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
    def values(self) -> Mapping[str, Scalar]:
        """What a condition or formula of the description may name, and its value. Later ones win."""
        return {
            **self.architecture.flags,
            **self.architecture.numbers,
            **self.dims,
            **self.model.numbers,
            **self.model.flags,
        }

    @cached_property
    def rows(self) -> dict[str, Any]:
        """Convention -> its rows: a cache of `atlas.graph.rows`."""
        return {}

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Every block once, in the order of first use."""
        found: list[Block] = []
        for part in self.parts:
            if isinstance(part, Block):
                found.append(part)
            else:
                found += [block for slot in part.slots for block in slot if block.instances]
        return tuple(found)

    def blocks_in_order(self) -> Iterator[tuple[int | None, Block]]:
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
        """id -> weight. Several kinds of block may share a weight."""
        return {weight.id: weight for block in self.blocks for node in block.nodes for weight in node.weights}

    def times(self, node: str) -> int:
        """The number of layers that contain a node."""
        return sum(block.instances for block in self.blocks if any(each.id == node for each in block.nodes))

    def instances(self, weight: Weight) -> int:
        """The number of layers that contain the weight. Blocks may share a node of which only some have it."""
        return self._instances.get(weight.id, 0)

    @cached_property
    def _instances(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for block in self.blocks:
            for weight in {weight.id for node in block.nodes for weight in node.weights}:
                found[weight] = found.get(weight, 0) + block.instances
        return found

    def size(self, weight: Weight) -> int:
        """The weight's parameters in one layer."""
        return shapes.size(shapes.atoms(weight.shape), self.dims)

    def tied_to(self, weight: Weight) -> Weight | None:
        """The weight whose matrix this one shares, if the model ties them."""
        other = self.architecture.ties.get(weight.id) if self.model.flags.get("tied") else None
        return self.weights[other] if other else None

    @cached_property
    def products(self) -> Mapping[str, tuple[str, ...]]:
        """Product axis -> the axes it consists of."""
        return {name: tuple(axis.parts.split()) for name, axis in self.axes.items() if axis.parts}

    def multiplied(self, step: Step) -> list[str]:
        """Every axis of a matrix product once; the product of their sizes is the number of multiply-adds."""
        operands, result = step.taken_apart(self.products)
        return list(dict.fromkeys(axis for axes in (*operands, result) for axis in axes))
