"""Binds a node: a component at its place in the graph, with its ports, parameters, weights and steps."""

from __future__ import annotations

from collections.abc import Mapping

from atlas import spec
from atlas.errors import ConfigError, SpecError
from atlas.grammar import shapes
from atlas.grammar.conditions import holds
from atlas.grammar.shapes import Shape
from atlas.graph import operations
from atlas.graph.binding.binding import Binding, known_dtypes
from atlas.graph.binding.sizes import needed
from atlas.graph.graph import Node, Operand, Step, Weight
from atlas.resolution.model import Scalar

MOST_STEPS = 20_000
"""Most steps of all blocks together. The largest built-in model has 40."""


class Nodes:
    """Binds nodes in execution order.

    Args:
        dims: the size of every axis that has one (from `atlas.graph.binding.sizes`).

    Attributes:
        weights: id -> weight of every node so far; several kinds of block may share a weight.
        indexes: symbol of indices -> the axis they select along, of every node so far.
    """

    def __init__(self, binding: Binding, dims: Mapping[str, int]) -> None:
        self.binding = binding
        self.library = binding.library
        self.dims = dims
        self.values: dict[str, Scalar] = {
            **binding.architecture.flags,
            **dims,
            **binding.model.numbers,
            **binding.model.flags,
        }
        self.weights: dict[str, Weight] = {}
        self.indexes: dict[str, str] = {}
        self._steps = 0

    def bind(self, node: spec.Node, known: dict[str, Shape], stack_axes: Mapping[str, str]) -> Node:
        """Bind a node and add its result and its inner symbols to `known`."""
        component = self.library.component(node.component)
        self.binding.known_renames(node.axes, node.id)
        self._steps += len(component.steps)
        if self._steps > MOST_STEPS:
            raise self.binding.fault(node.id, f"the graph has more than {MOST_STEPS:,} steps")
        axes = {**stack_axes, **node.axes}
        params = self._params(node, component)

        def shape(text: str) -> Shape:
            renamed = shapes.rename(shapes.parse(text), axes)
            self.binding.known_axes(shapes.atoms(renamed), node.id)
            return renamed

        scope: dict[str, Operand] = {}
        given = [node.of] if isinstance(node.of, str) else node.of
        if len(given) != len(component.ports):
            raise self.binding.fault(
                node.id, f"is {component.id} of {', '.join(component.ports)}; given {', '.join(given)}"
            )
        for (port, text), source in zip(component.ports.items(), given, strict=True):
            if source not in known:
                raise self.binding.fault(node.id, f"is of {source!r}, which no earlier node sets")
            if known[source] != shape(text):
                wanted, found = shapes.render(shape(text)), shapes.render(known[source])
                raise self.binding.fault(node.id, f"{port} expects ({wanted}), {source} is ({found})")
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
            raise self.binding.fault(node.id, f"no step of {component.id} applies under these conditions")
        last = steps[-1]
        known[node.id] = last.shape
        if last.sets in self.indexes:
            self.indexes[node.id] = self.indexes[last.sets]
        return Node(node.id, component, ports, tuple(steps), tuple(weights), last.sets, last.shape)

    def _params(self, node: spec.Node, component: spec.Component) -> dict[str, Scalar]:
        """The component's parameters: the node's `with`, else the default. Names are replaced by the model's values."""
        if strange := set(node.given) - set(component.params):
            raise self.binding.fault(node.id, f"{component.id} has no parameter {', '.join(sorted(strange))}")
        params: dict[str, Scalar] = {}
        for name, default in component.params.items():
            value = node.given.get(name, default[0] if isinstance(default, list) else default)
            if isinstance(default, list):
                if value not in default:
                    raise self.binding.fault(node.id, f"{name} is one of {', '.join(default)}, not {value!r}")
                params[name] = value
            elif isinstance(value, str) and isinstance(self.values.get(value), bool):
                params[name] = self.values[value]
            elif isinstance(value, str):
                numbers = {k: v for k, v in self.values.items() if isinstance(v, int | float)}
                try:
                    params[name] = shapes.evaluate(value, numbers)
                except shapes.MissingName as error:
                    raise ConfigError(
                        f"{self.binding.model.id}: {node.id} needs {value}: {error.message}"
                    ) from None
            else:
                params[name] = value
        return params

    def _weight(self, node: spec.Node, name: str, declared: spec.Weight, shape: Shape) -> Weight:
        component = node.id if name == "weight" else f"{node.id}.{name}"
        weight = Weight(f"{node.id}.{name}", component, node.id, shape, declared)
        for axis in shapes.atoms(shape):
            needed(axis, self.dims, self.binding)
        known = self.weights.setdefault(weight.id, weight)
        if known.shape != shape:
            both = f"({shapes.render(known.shape)}) and ({shapes.render(shape)})"
            raise self.binding.fault(
                weight.id, f"is in two blocks with different shapes, {both}; rename one of the nodes"
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
        known_dtypes(where, step.dtype, step.computed_in)
        by = step.by
        if isinstance(by, str):
            if by not in params:
                raise SpecError(f"{where}: by = {by!r}: there is no such parameter")
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
        opened, result = bound.taken_apart(self.library.parts)
        if problem := operations.fault(bound.op, opened, result, bound.over):
            raise SpecError(f"{where} (at {self.binding.architecture.id}.{node.id}): {problem}")
        if bound.op == "rename":
            for was, now in zip(opened[0], result, strict=True):
                if was != now and (was not in self.dims or self.dims[was] != self.dims.get(now)):
                    sizes = f"{self.dims.get(was, 'free')} and {self.dims.get(now, 'free')}"
                    raise SpecError(
                        f"{where} (at {self.binding.architecture.id}.{node.id}): cannot rename {was} to {now}: their "
                        f"sizes are {sizes}"
                    )
        if bound.op == "top_k" and bound.over is not None:
            self.indexes[bound.sets] = bound.over
        return bound

    def _operand(self, text: str, scope: Mapping[str, Operand], where: str) -> Operand:
        """`x`, or `w1[chosen]`: w1, with the axis that the indices `chosen` select along replaced by chosen's axes."""
        name, bracket, index = text.removesuffix("]").partition("[")
        for word in (name, index) if bracket else (name,):
            if word not in scope:
                raise SpecError(f"{where}: {word!r} is not a port, weight or earlier step")
        operand = scope[name]
        if not bracket:
            return operand
        chosen = scope[index]
        axis = self.indexes.get(chosen.name)
        if axis is None or axis not in shapes.atoms(operand.shape):
            raise SpecError(f"{where}: {text!r}: {index} does not contain indices along an axis of {name}")
        rest = [group for group in operand.shape if group != (axis,)]
        shape = tuple(chosen.shape) + tuple(group for group in rest if group not in chosen.shape)
        return Operand(operand.name, shape, operand.weight, chosen.name, axis)
