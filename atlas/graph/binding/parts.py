"""Binds the top level of the graph in execution order: nodes, stacks of blocks, and tied weights."""

from __future__ import annotations

from collections.abc import Mapping

from atlas import spec
from atlas.errors import ConfigError
from atlas.grammar import shapes
from atlas.grammar.shapes import Shape
from atlas.graph.binding.binding import Binding, known_dtypes
from atlas.graph.binding.blocks import block
from atlas.graph.binding.layers import layers
from atlas.graph.binding.nodes import Nodes
from atlas.graph.binding.sizes import reads
from atlas.graph.binding.values import Values
from atlas.graph.graph import Block, Graph, Stack

MOST_LAYERS = 1_024
"""Most layers of a stack. A larger number is an error, and its layers could not be listed in reasonable time."""


class Parts:
    """Binds the parts in order; each may use the results of earlier parts.

    Args:
        dims: the size of every axis that has one (from `atlas.graph.binding.sizes`).
    """

    def __init__(self, binding: Binding, dims: Mapping[str, int]) -> None:
        self.binding = binding
        self.architecture = binding.architecture
        self.dims = dims
        self.values = Values(binding, dims)
        self.nodes = Nodes(binding, dims, self.values)
        self.places: dict[str, tuple[str, int]] = {}

    def graph(self) -> Graph:
        """Bind all parts and check every name and shape.

        Raises:
            ConfigError: a dimension is missing, or there are too many layers.
            SpecError: the description contradicts itself, the vocabulary or a component.
        """
        known = {name: shapes.parse(entry.shape) for name, entry in self.architecture.inputs.items()}
        for name, entry in self.architecture.inputs.items():
            self.binding.known_axes(shapes.atoms(known[name]), f"inputs.{name}")
            known_dtypes(f"architecture {self.architecture.id}: inputs.{name}", entry.dtype)
            if entry.value == "positions" and (entry.shape != "positions" or entry.dtype != "I64"):
                raise self.binding.fault(
                    f"inputs.{name}",
                    f"the numbers of positions are (positions) in I64, declared is ({entry.shape}) in {entry.dtype}",
                )
        parts: list[Block | Stack] = []
        for i, part in enumerate(self.architecture.graph):
            if not self.nodes.is_there(part.when, "graph"):
                continue
            if part.node is not None and part.stack is part.of is None:
                if not self.nodes.is_there(part.node.when, part.node.id):
                    continue
                self._place(part.node.id, "graph", i)
                if part.node.id in self.architecture.blocks:
                    raise self.binding.fault(part.node.id, "is also the name of a block; rename one of them")
                node = self.nodes.bind(part.node, known, {})
                if inner := [step.id for step in node.steps if step.op == "of_layer"]:
                    raise self.binding.fault(inner[0], "is in no layer")
                parts.append(Block(part.node.id, (node,)))
            elif part.node is None and part.stack is not None and part.of is not None:
                self._place(part.stack, "graph", i)
                stack = self._stack(part.stack, part.of, known)
                known[part.stack] = stack.shape
                parts.append(stack)
            else:
                raise self.binding.fault("graph", "each part must be a node, or a stack with `of`")
        self._ties()
        self._refuse_unread()
        return Graph(
            model=self.binding.model,
            architecture=self.architecture,
            axes=self.binding.library.axes,
            dims=self.dims,
            inputs=self.architecture.inputs,
            parts=tuple(parts),
        )

    def _place(self, node: str, where: str, slot: int) -> None:
        """Alternative blocks may share a node id; otherwise a node id must be unique."""
        if self.places.setdefault(node, (where, slot)) != (where, slot):
            raise self.binding.fault(node, "is in two places of the graph; rename one of them")

    def _stack(self, name: str, of: str, known: Mapping[str, Shape]) -> Stack:
        fault = self.binding.fault
        if name not in self.architecture.stacks:
            raise fault("graph", f"unknown stack {name!r}")
        stack = self.architecture.stacks[name]
        if of not in known:
            raise fault(name, f"is of {of!r}, which no earlier node sets")
        axis = self.binding.library.axes.get(stack.over)
        if axis is None or axis.index is None:
            raise fault(name, f"over {stack.over!r}: expected an axis with an `index` in axes.toml")
        count = self.binding.needed(stack.over, self.dims)
        self.values.read.add(stack.over)
        if count > MOST_LAYERS:
            raise ConfigError(
                f"{self.binding.model.id}: {stack.over} is {count:,}; at most {MOST_LAYERS:,} can be described"
            )
        self.binding.known_renames(stack.axes, name)
        shape = known[of]
        carried: dict[str, tuple[Shape, int]] = {}
        slots = []
        for place, choices in enumerate(stack.layers):
            numbers: dict[str, list[int]] = {}
            chosen = layers(choices, count, name, self.binding, self.values)
            for choice, several in zip(choices, chosen, strict=True):
                numbers.setdefault(choice.block, []).extend(several)
            slots.append(
                tuple(
                    self._block(each, name, place, tuple(sorted(several)), known, shape, stack, carried)
                    for each, several in numbers.items()
                )
            )
        return Stack(name, axis.index, count, of, tuple(slots), shape)

    def _block(
        self,
        name: str,
        stack_name: str,
        place: int,
        numbers: tuple[int, ...],
        known: Mapping[str, Shape],
        shape: Shape,
        stack: spec.Stack,
        carried: dict[str, tuple[Shape, int]],
    ) -> Block:
        """Bind a block of a stack, or a variant of one.

        Args:
            place: its position in the layer.
            numbers: the layers that use it. Of a block that no layer uses, nothing is evaluated.
            shape: of the stack's input and result.
            carried: symbol inside a node -> its shape, and the first layer that sets it. Later layers may read it; those of
                this block are added.
        """
        fault = self.binding.fault
        declared = block(self.architecture, name)
        if declared is None:
            raise fault(stack_name, f"unknown block {name!r}")
        for node in declared.nodes:
            self._place(node.id, stack_name, place)
        if not numbers:
            return Block(name, (), stack_name, ())
        axes = {**stack.axes, **declared.axes}
        self.binding.known_renames(axes, name)
        earlier = {symbol: made for symbol, (made, first) in carried.items() if first < numbers[0]}
        scope = {**earlier, **known, "x": shape}
        nodes = []
        for node in declared.nodes:
            if self.nodes.is_there(node.when, node.id):
                self._require_earlier(node, scope, numbers[0])
                nodes.append(self.nodes.bind(node, scope, axes))
        for step in (step for node in nodes for step in node.steps):
            carried[step.sets] = step.shape, min(numbers[0], carried.get(step.sets, ((), numbers[0]))[1])
        if not nodes:
            raise fault(name, "no node of it applies under these conditions")
        for step in (step for node in nodes for step in node.steps):
            if step.op == "of_layer" and step.over != stack.over:
                raise fault(name, f"{step.id} selects along {step.over}; the layers are along {stack.over}")
        if nodes[-1].shape != shape:
            raise fault(
                name,
                f"its result is ({shapes.render(nodes[-1].shape)}), but its input is ({shapes.render(shape)})",
            )
        return Block(name, tuple(nodes), stack_name, numbers)

    def _require_earlier(self, node: spec.Node, scope: Mapping[str, Shape], layer: int) -> None:
        """Refuse a layer that reads what earlier layers set, if none does.

        Raises:
            ConfigError: naming the layer and what it reads.
        """
        for source in [node.of] if isinstance(node.of, str) else node.of:
            other, dot, symbol = source.partition(".")
            if source not in scope and dot and other in self.places:
                raise ConfigError(
                    f"{self.binding.model.id}: layer {layer}, counted from 0, reads the {symbol} that an earlier layer's {other} "
                    "made, and no earlier layer has one"
                )

    def _refuse_unread(self) -> None:
        """Refuse a stated dimension that no weight, step, size or rule reads: its effect would be missing.

        Raises:
            ConfigError: naming the dimensions.
        """
        model = self.binding.model
        read = reads(self.values.read, self.binding)
        unread = [axis for axis in model.dims if axis not in read and axis not in model.optional]
        if unread:
            raise ConfigError(
                f"{model.id}: {', '.join(f'{self.binding.meaning(axis)} is {model.dims[axis]:,}' for axis in unread)}, "
                f"which nothing in the description of {self.architecture.id} reads"
            )

    def _ties(self) -> None:
        weights, ties = self.nodes.components.weights, self.architecture.ties
        absent = {
            part.node.id
            for part in self.architecture.graph
            if part.node is not None
            and not (
                self.nodes.is_there(part.when, "graph") and self.nodes.is_there(part.node.when, part.node.id)
            )
        }
        for pair in ties.items():
            if absent.intersection(name.partition(".")[0] for name in pair):
                continue
            if unknown := [name for name in pair if name not in weights]:
                raise self.binding.fault("ties", f"{', '.join(unknown)}: no component declares it")
            if pair[1] in ties:
                raise self.binding.fault("ties", f"{pair[0]} is tied to {pair[1]}, which is itself tied")
            one, other = (weights[name] for name in pair)
            sizes = [[shapes.size(group, self.dims) for group in weight.shape] for weight in (one, other)]
            if sizes[0] != sizes[1]:
                both = f"({shapes.render(one.shape)}) and ({shapes.render(other.shape)})"
                raise self.binding.fault("ties", f"{one.id} and {other.id} differ in shape, {both}")
