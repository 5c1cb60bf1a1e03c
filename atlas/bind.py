"""Binds an architecture to a model: resolves every name, chooses the blocks of every layer, and checks all of it.

What a description gets wrong shows here and not in an answer: an unknown axis, a port given another shape than it
wants, a result its operands cannot give, a weight no component has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from atlas import dtypes, operations, shapes, spec
from atlas.conditions import holds
from atlas.errors import ConfigError, SpecError
from atlas.graph import Block, Graph, Node, Operand, Stack, Step, Weight
from atlas.library import Library
from atlas.model import Model, Scalar
from atlas.shapes import Shape

MOST_LAYERS = 1_024
"""More than any model has; a larger number is a slip, and listing its layers would take for ever."""


def bind(model: Model, library: Library) -> Graph:
    """The model's forward pass as bound steps.

    Raises:
        ConfigError: a dimension is missing, or does not divide as the architecture needs.
        SpecError: the description contradicts itself, the vocabulary or a component.
    """
    if not model.family:
        return _Binder(model, library).graph()
    known: Graph | None = library.bound.get(model.id)
    if known is None or known.model != model:
        known = library.bound[model.id] = _Binder(model, library).graph()
    return known


class _Binder:
    def __init__(self, model: Model, library: Library) -> None:
        self.model = model
        self.library = library
        self.architecture = library.architecture(model.architecture)
        self.dims = self._sizes()
        self.values: dict[str, Scalar] = {
            **self.architecture.flags,
            **self.dims,
            **model.numbers,
            **model.flags,
        }
        self.weights: dict[str, Weight] = {}
        self.indexes: dict[str, str] = {}
        self.places: dict[str, tuple[str, int]] = {}

    def graph(self) -> Graph:
        known = {name: shapes.parse(entry.shape) for name, entry in self.architecture.inputs.items()}
        for name, entry in self.architecture.inputs.items():
            self._known_axes(shapes.atoms(known[name]), f"inputs.{name}")
            self._known_dtypes(f"architecture {self.architecture.id}: inputs.{name}", entry.dtype)
        parts: list[Block | Stack] = []
        for i, part in enumerate(self.architecture.graph):
            if part.node is not None and part.stack is part.of is None:
                self._place(part.node.id, "graph", i)
                if part.node.id in self.architecture.blocks:
                    raise self._fault(part.node.id, "is the name of a block as well; rename one of them")
                node = self._node(part.node, known, {})
                parts.append(Block(part.node.id, (node,)))
            elif part.node is None and part.stack is not None and part.of is not None:
                self._place(part.stack, "graph", i)
                stack = self._stack(part.stack, part.of, known)
                known[part.stack] = stack.shape
                parts.append(stack)
            else:
                raise self._fault("graph", "each part is a node, or a stack `of` something")
        self._ties()
        return Graph(
            model=self.model,
            architecture=self.architecture,
            axes=self.library.axes,
            dims=self.dims,
            inputs=self.architecture.inputs,
            parts=tuple(parts),
        )

    def _fault(self, where: str, what: str) -> SpecError:
        return SpecError(f"architecture {self.architecture.id}: {where}: {what}")

    def _known_axes(self, names: Iterable[str], where: str) -> None:
        if unknown := [axis for axis in names if axis not in self.library.axes]:
            raise self._fault(where, f"{', '.join(unknown)}: no such axis in axes.toml")

    def _known_dtypes(self, where: str, *codes: str) -> None:
        for code in codes:
            if code != "A" and code not in dtypes.BITS:
                raise SpecError(
                    f"{where}: {code!r} is neither A nor a dtype; there are {', '.join(dtypes.BITS)}"
                )

    def _place(self, node: str, where: str, slot: int) -> None:
        """Blocks that stand for each other may share a node; anywhere else one name is one node."""
        if self.places.setdefault(node, (where, slot)) != (where, slot):
            raise self._fault(node, "stands in two places of the graph; rename one of them")

    def _ties(self) -> None:
        for pair in self.architecture.ties.items():
            if unknown := [name for name in pair if name not in self.weights]:
                raise self._fault("ties", f"{', '.join(unknown)}: no component declares it")
            if pair[1] in self.architecture.ties:
                raise self._fault("ties", f"{pair[0]} is tied to {pair[1]}, which is itself tied")
            one, other = (self.weights[name] for name in pair)
            sizes = [[shapes.size(group, self.dims) for group in weight.shape] for weight in (one, other)]
            if sizes[0] != sizes[1]:
                both = f"({shapes.render(one.shape)}) and ({shapes.render(other.shape)})"
                raise self._fault("ties", f"{one.id} and {other.id} differ in shape, {both}")

    # ---- sizes

    def _sizes(self) -> dict[str, int]:
        """The model's dims and everything that follows from them, each an exact positive integer."""
        self._known_axes(self.model.dims, f"dims of {self.model.id}")
        self._known_axes(self.architecture.derived, "derived")
        sizes = dict(self.model.dims)
        derived = {axis: text for axis, text in self.architecture.derived.items() if axis not in sizes}
        derived |= {
            name: axis.size for name, axis in self.library.axes.items() if axis.size and name not in sizes
        }
        for axis, text in derived.items():
            try:
                sizes[axis] = int(shapes.evaluate(text, sizes))
            except shapes.MissingName:
                continue  # an axis this architecture has no use for, or one of the pass (keys)
            except SpecError as error:
                raise ConfigError(
                    f"{self.model.id}: {self._meaning(axis)} cannot be had: {error.message}"
                ) from None
        for axis, count in sizes.items():
            if count < 1:
                raise ConfigError(
                    f"{self.model.id}: {self._meaning(axis)} is {count:,}, expected a positive integer"
                )
        for axis, parts in self.library.parts.items():
            if axis in sizes and all(part in sizes for part in parts):
                product = shapes.size(parts, sizes)
                if product != sizes[axis]:
                    raise ConfigError(
                        f"{self.model.id}: {self._meaning(axis)} is {sizes[axis]:,}, but {' × '.join(parts)} is "
                        f"{product:,}"
                    )
        return sizes

    def _meaning(self, axis: str) -> str:
        known = self.library.axes.get(axis)
        return f"{axis} ({known.meaning})" if known else axis

    # ---- layers

    def _stack(self, name: str, of: str, known: Mapping[str, Shape]) -> Stack:
        if name not in self.architecture.stacks:
            raise self._fault("graph", f"no stack is called {name!r}")
        stack = self.architecture.stacks[name]
        if of not in known:
            raise self._fault(name, f"is of {of!r}, which nothing before it makes")
        axis = self.library.axes.get(stack.over)
        if axis is None or axis.index is None:
            raise self._fault(name, f"over {stack.over!r}: expected an axis with an `index` in axes.toml")
        count = self._needed(stack.over)
        if count > MOST_LAYERS:
            raise ConfigError(
                f"{self.model.id}: {stack.over} is {count:,}; at most {MOST_LAYERS:,} can be described"
            )
        self._renames(stack.axes, name)
        shape = known[of]
        slots = []
        for place, choices in enumerate(stack.layers):
            slot = []
            for choice, layers in zip(choices, self._layers(choices, count, name), strict=True):
                if choice.block not in self.architecture.blocks:
                    raise self._fault(name, f"no block is called {choice.block!r}")
                block = self.architecture.blocks[choice.block]
                ids = [node.id for node in block]
                if twice := [node for node in ids if ids.count(node) > 1]:
                    raise self._fault(choice.block, f"two of its nodes are called {twice[0]!r}")
                for node in ids:
                    self._place(node, name, place)
                scope = {**known, "x": shape}
                nodes = tuple(self._node(node, scope, stack.axes) for node in block)
                if nodes[-1].shape != shape:
                    raise self._fault(
                        choice.block,
                        f"hands on ({shapes.render(nodes[-1].shape)}), but receives ({shapes.render(shape)})",
                    )
                slot.append(Block(choice.block, nodes, name, layers))
            slots.append(tuple(slot))
        return Stack(name, axis.index, count, of, tuple(slots), shape)

    def _layers(self, choices: Sequence[spec.Choice], count: int, where: str) -> list[Sequence[int]]:
        """For each choice the layers in which it is the first that fits."""
        if not (choices[0].first or choices[0].every or choices[0].at):
            return [range(count)] + [()] * (len(choices) - 1)
        fits = [self._fits(choice, count, where) for choice in choices]
        taken: list[list[int]] = [[] for _ in choices]
        for i in range(count):
            chosen = next((n for n, fit in enumerate(fits) if fit(i)), None)
            if chosen is None:
                raise self._fault(where, f"no block fits layer {i}")
            taken[chosen].append(i)
        return [tuple(layers) for layers in taken]

    def _fits(self, choice: spec.Choice, count: int, where: str) -> Callable[[int], bool]:
        values = {**self.model.numbers, **self.dims}
        first = None if choice.first is None else int(shapes.evaluate(choice.first, values))
        every = None if choice.every is None else int(shapes.evaluate(choice.every, values))
        if every is not None and every < 1:
            raise self._fault(where, f"{choice.block} stands in every {every}th layer; expected 1 or more")
        if choice.at is not None and choice.at not in self.model.lists:
            raise self._fault(where, f"{self.model.id} lists no layers called {choice.at!r}")
        at = None if choice.at is None else frozenset(self.model.lists[choice.at])
        if at and max(at) >= count:
            raise ConfigError(
                f"{self.model.id}: {choice.at} names layer {max(at)}, and there are {count}, counted from 0"
            )
        return lambda i: (
            (first is None or i < first)
            and (every is None or (i + 1) % every == 0)
            and (at is None or i in at)
        )

    def _needed(self, axis: str) -> int:
        if axis not in self.dims:
            raise ConfigError(f"{self.model.id}: {self._meaning(axis)} is not given")
        return self.dims[axis]

    # ---- nodes

    def _node(self, node: spec.Node, known: dict[str, Shape], stack_axes: Mapping[str, str]) -> Node:
        """Bind a node and enter its result, and its inner symbols, into `known`."""
        component = self.library.component(node.component)
        self._renames(node.axes, node.id)
        axes = {**stack_axes, **node.axes}
        params = self._params(node, component)

        def shape(text: str) -> Shape:
            renamed = shapes.rename(shapes.parse(text), axes)
            self._known_axes(shapes.atoms(renamed), node.id)
            return renamed

        scope: dict[str, Operand] = {}
        given = [node.of] if isinstance(node.of, str) else node.of
        if len(given) != len(component.ports):
            raise self._fault(
                node.id, f"is {component.id} of {', '.join(component.ports)}; given {', '.join(given)}"
            )
        for (port, text), source in zip(component.ports.items(), given, strict=True):
            if source not in known:
                raise self._fault(node.id, f"is of {source!r}, which nothing before it makes")
            if known[source] != shape(text):
                wanted, found = shapes.render(shape(text)), shapes.render(known[source])
                raise self._fault(node.id, f"{port} wants ({wanted}), {source} is ({found})")
            scope[port] = Operand(source, known[source])
        ports = tuple(scope.values())
        weights = []
        for name, declared in component.weights.items():
            if holds(declared.when, params):
                weight = self._weight(node, name, declared, shape(declared.shape))
                weights.append(weight)
                scope[name] = Operand(weight.id, weight.shape, weight)
        steps = []
        for declared_step in component.steps:
            if holds(declared_step.when, params):
                step = self._step(
                    node, component, declared_step, scope, params, shape(declared_step.shape), axes
                )
                steps.append(step)
                scope[declared_step.out or declared_step.id] = Operand(step.sets, step.shape)
                known[step.sets] = step.shape
        if not steps:
            raise self._fault(node.id, f"no step of {component.id} is there under these conditions")
        last = steps[-1]
        known[node.id] = last.shape
        if last.sets in self.indexes:
            self.indexes[node.id] = self.indexes[last.sets]
        return Node(node.id, component, ports, tuple(steps), tuple(weights), last.sets, last.shape)

    def _renames(self, axes: Mapping[str, str], where: str) -> None:
        self._known_axes((*axes, *axes.values()), f"{where}: axes")

    def _params(self, node: spec.Node, component: spec.Component) -> dict[str, Scalar]:
        """The component's parameters: a node's `with` over the defaults, names replaced by the model's values."""
        if strange := set(node.given) - set(component.params):
            raise self._fault(node.id, f"{component.id} has no parameter {', '.join(sorted(strange))}")
        params: dict[str, Scalar] = {}
        for name, default in component.params.items():
            value = node.given.get(name, default[0] if isinstance(default, list) else default)
            if isinstance(default, list):
                if value not in default:
                    raise self._fault(node.id, f"{name} is one of {', '.join(default)}, not {value!r}")
                params[name] = value
            elif isinstance(value, str) and isinstance(self.values.get(value), bool):
                params[name] = self.values[value]
            elif isinstance(value, str):
                numbers = {k: v for k, v in self.values.items() if isinstance(v, int | float)}
                try:
                    params[name] = shapes.evaluate(value, numbers)
                except shapes.MissingName as error:
                    raise ConfigError(f"{self.model.id}: {node.id} needs {value}: {error.message}") from None
            else:
                params[name] = value
        return params

    def _weight(self, node: spec.Node, name: str, declared: spec.Weight, shape: Shape) -> Weight:
        component = node.id if name == "weight" else f"{node.id}.{name}"
        weight = Weight(f"{node.id}.{name}", component, node.id, shape, declared)
        for axis in shapes.atoms(shape):
            self._needed(axis)
        known = self.weights.setdefault(weight.id, weight)
        if known.shape != shape:
            both = f"({shapes.render(known.shape)}) and ({shapes.render(shape)})"
            raise self._fault(
                weight.id, f"stands in two blocks with two shapes, {both}; rename one of the nodes"
            )
        return known

    def _step(
        self,
        node: spec.Node,
        component: spec.Component,
        step: spec.Step,
        scope: Mapping[str, Operand],
        params: Mapping[str, Scalar],
        shape: Shape,
        axes: Mapping[str, str],
    ) -> Step:
        where = f"component {component.id}: {step.id}"
        operands = tuple(self._operand(text, scope, where) for text in step.of)
        self._known_dtypes(where, step.dtype, step.computed_in)
        by = step.by
        if isinstance(by, str):
            if by not in params:
                raise SpecError(f"{where}: by = {by!r}: no parameter is called that")
            by = params[by]
        bound = Step(
            id=f"{node.id}.{step.id}",
            node=node.id,
            op=step.op,
            of=operands,
            sets=f"{node.id}.{step.out or step.id}",
            shape=shape,
            dtype=step.dtype,
            computed_in=step.computed_in,
            over=axes.get(step.over, step.over) if step.over else None,
            by=by,
            words=step,
        )
        named = {axis for operand in operands for axis in shapes.atoms(operand.shape)} | set(
            shapes.atoms(shape)
        )
        opened = [
            shapes.take_apart(shapes.atoms(operand.shape), named, self.library.parts) for operand in operands
        ]
        result = shapes.take_apart(shapes.atoms(shape), named, self.library.parts)
        if problem := operations.fault(bound.op, opened, result, bound.over):
            raise SpecError(f"{where} (at {self.architecture.id}.{node.id}): {problem}")
        if bound.op == "rename":
            for was, now in zip(opened[0], result, strict=True):
                if was != now and (was not in self.dims or self.dims[was] != self.dims.get(now)):
                    sizes = f"{self.dims.get(was, 'free')} and {self.dims.get(now, 'free')}"
                    raise SpecError(
                        f"{where} (at {self.architecture.id}.{node.id}): rename cannot call {was} {now}: their "
                        f"sizes are {sizes}"
                    )
        if bound.op == "top_k" and bound.over is not None:
            self.indexes[bound.sets] = bound.over
        return bound

    def _operand(self, text: str, scope: Mapping[str, Operand], where: str) -> Operand:
        """`x`, or `w1[chosen]`: w1 with the axis that `chosen` holds indices along replaced by chosen's own axes."""
        name, bracket, index = text.removesuffix("]").partition("[")
        for word in (name, index) if bracket else (name,):
            if word not in scope:
                raise SpecError(f"{where}: {word!r} is no port, weight or earlier step")
        operand = scope[name]
        if not bracket:
            return operand
        chosen = scope[index]
        axis = self.indexes.get(chosen.name)
        if axis is None or axis not in shapes.atoms(operand.shape):
            raise SpecError(f"{where}: {text!r}: {index} does not hold indices along an axis of {name}")
        rest = [group for group in operand.shape if group != (axis,)]
        shape = tuple(chosen.shape) + tuple(group for group in rest if group not in chosen.shape)
        return Operand(operand.name, shape, operand.weight, chosen.name, axis)
