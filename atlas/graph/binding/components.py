"""Binds a component at one place: its ports, parameters, weights and steps, and those of the components it uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from atlas import spec
from atlas.errors import SpecError
from atlas.grammar import shapes
from atlas.grammar.conditions import ConditionFault, holds
from atlas.grammar.shapes import LEADING, Shape
from atlas.graph.binding import step_checks
from atlas.graph.binding.binding import Binding, known_dtypes
from atlas.graph.binding.place import MOST_USED, Place, last_words, symbols_of, words_at
from atlas.graph.binding.values import Params, Values
from atlas.graph.graph import Operand, Step, Weight
from atlas.graph.words import filled
from atlas.resolution.model import Scalar

MOST_STEPS = 20_000
"""Most steps of all blocks together. The largest built-in model has a few hundred."""


class Components:
    """Binds components in execution order.

    Attributes:
        weights: id -> weight of everything so far; several kinds of block may share a weight.
        indexes: symbol of indices -> the axis they select along.
    """

    def __init__(self, binding: Binding, dims: Mapping[str, int], values: Values) -> None:
        self.binding, self.library = binding, binding.library
        self.dims, self.values = dims, values
        self.weights: dict[str, Weight] = {}
        self.indexes: dict[str, str] = {}
        self._steps = 0

    def shape(self, text: str, place: Place) -> Shape:
        """A shape at a place: axes renamed, and `...` replaced.

        Raises:
            SpecError: an axis is not in axes.toml.
        """
        parsed = shapes.parse(text)
        leads = parsed[:1] == ((LEADING,),)
        if leads and place.lead is None:
            raise SpecError(
                f"component {place.component.id}: shape {text[:80]!r}: no port begins with '...', which so stands for nothing"
            )
        renamed = shapes.rename(parsed[leads:], place.axes)
        self.binding.known_axes(shapes.atoms(renamed), place.where)
        return (*((place.lead or ()) if leads else ()), *renamed)

    def steps(self, place: Place, scope: dict[str, Operand]) -> tuple[list[Step], list[Weight]]:
        """The present steps and weights at a place; `scope` has the ports, and gets every symbol.

        Raises:
            SpecError: the description contradicts itself or the vocabulary.
            ConfigError: the model lacks a dimension or number.
        """
        component = place.component
        self._steps += len(component.steps)
        if self._steps > MOST_STEPS:
            raise self.binding.fault(place.node, f"the graph has more than {MOST_STEPS:,} steps")
        weights: list[Weight] = []
        for name, declared in component.weights.items():
            if self._holds(declared.when, place, name):
                weight = self._weight(place, name, declared)
                weights.append(weight)
                scope[name] = Operand(weight.id, weight.shape, weight)
        steps: list[Step] = []
        ids = set(component.weights)
        for declared_step in component.steps:
            if not self._holds(declared_step.when, place, declared_step.id):
                continue
            if declared_step.id in ids:
                raise SpecError(
                    f"component {component.id}: {declared_step.id}: two weights or steps have this id"
                )
            ids.add(declared_step.id)
            if declared_step.use:
                inner, more = self._used(place, declared_step, scope)
                weights += more
            else:
                inner = [self._step(place, declared_step, scope)]
            steps += inner
            scope[declared_step.out or declared_step.id] = Operand(inner[-1].sets, inner[-1].shape)
        if not steps:
            raise self.binding.fault(place.where, f"no step of {component.id} applies under these conditions")
        return steps, weights

    def _holds(self, when: str | None, place: Place, what: str) -> bool:
        try:
            return holds(when, place.params)
        except ConditionFault as error:
            raise SpecError(f"component {place.component.id}: {what}: {error.message}") from None

    def _used(
        self, place: Place, step: spec.Step, scope: Mapping[str, Operand]
    ) -> tuple[list[Step], list[Weight]]:
        """The steps of a component that a step uses. Its last step sets the symbol of that step."""
        where = f"component {place.component.id}: {step.id}"
        if step.op:
            raise SpecError(f"{where}: has both op and use, expected one of them")
        if len(place.path) >= MOST_USED:
            raise SpecError(f"{where}: components use each other more than {MOST_USED} deep")
        component = self.library.component(step.use)
        operands = [self._operand(text, scope, where) for text in step.of]
        axes = {name: place.axes.get(axis, axis) for name, axis in step.axes.items()}
        self.binding.known_renames(axes, f"{place.where}.{step.id}")
        params = Params(
            component,
            step.given,
            self.values,
            self.binding,
            f"{place.where}.{step.id}",
            outer=place.params,
        )
        inner = Place(place.node, (*place.path, step.id), component, {**place.axes, **axes}, params, None)
        inner = replace(
            inner,
            lead=self.lead(inner, [operand.shape for operand in operands]),
            symbols=symbols_of(place, step, component, scope),
        )
        ports = self.ports(inner, operands)
        steps, weights = self.steps(inner, ports)
        wanted = self.shape(step.shape, place)
        if steps[-1].shape != wanted:
            raise SpecError(
                f"{where}: {step.use} gives ({shapes.render(steps[-1].shape)}), declared is ({shapes.render(wanted)})"
            )
        sets = f"{place.where}.{step.out or step.id}"
        last = replace(steps[-1], sets=sets, words=last_words(steps[-1].words, step))
        return [*steps[:-1], last], weights

    def lead(self, place: Place, given: list[Shape]) -> Shape | None:
        """The axes that `...` stands for: those before the last axes of the first operand that has it."""
        for text, shape in zip(place.component.ports.values(), given, strict=False):
            parsed = shapes.parse(text)
            if parsed[:1] == ((LEADING,),):
                return shape[: len(shape) - (len(parsed) - 1)]
        return None

    def ports(self, place: Place, given: list[Operand]) -> dict[str, Operand]:
        """Port -> operand.

        Raises:
            SpecError: there are more operands than ports, fewer than must be given, or one has another shape.
        """
        component = place.component
        must = [port for port in component.ports if port not in component.optional]
        if not len(must) <= len(given) <= len(component.ports):
            raise self.binding.fault(
                place.where,
                f"is {component.id} of {', '.join(must)}; given {', '.join(o.name for o in given)}",
            )
        scope: dict[str, Operand] = {}
        for (port, text), operand in zip(component.ports.items(), given, strict=False):
            wanted = self.shape(text, place)
            if operand.shape != wanted:
                raise self.binding.fault(
                    place.where,
                    f"{port} expects ({shapes.render(wanted)}), {operand.name} is ({shapes.render(operand.shape)})",
                )
            scope[port] = operand
        return scope

    def _weight(self, place: Place, name: str, declared: spec.Weight) -> Weight:
        id = place.where if name == "weight" and place.path else f"{place.where}.{name}"
        component = place.where if name == "weight" else id
        if declared.shape.lstrip().startswith(LEADING):
            raise SpecError(f"component {place.component.id}: {name}: '...' in the shape of a weight")
        shape = self.shape(declared.shape, place)
        for axis in shapes.atoms(shape):
            self.binding.needed(axis, self.dims)
            self.values.read.add(axis)
        weight = Weight(id, component, place.node, shape, declared)
        known = self.weights.setdefault(id, weight)
        if known.shape != shape:
            both = f"({shapes.render(known.shape)}) and ({shapes.render(shape)})"
            raise self.binding.fault(
                id, f"is in two blocks with different shapes, {both}; rename one of the nodes"
            )
        return known

    def _step(self, place: Place, step: spec.Step, scope: Mapping[str, Operand]) -> Step:
        where = f"component {place.component.id}: {step.id}"
        at = f"(at {self.binding.architecture.id}.{place.where})"
        if not step.op:
            raise SpecError(f"{where}: has neither op nor use, expected one of them")
        operands = tuple(self._operand(text, scope, where) for text in step.of)
        known_dtypes(where, step.dtype, step.computed_in)
        shape = self.shape(step.shape, place)
        self.values.read.update(shapes.atoms(shape))
        share = self._param(step.share, place, where) if step.share is not None else 1.0
        if isinstance(share, bool | str):
            raise SpecError(f"{where} {at}: share = {share!r}, expected a number")
        share = float(share)
        bound = Step(
            id=f"{place.where}.{step.id}",
            node=place.node,
            op=step.op,
            of=operands,
            sets=f"{place.where}.{step.out or step.id}",
            shape=shape,
            dtype=step.dtype,
            computed_in=step.computed_in,
            over=place.axes.get(step.over, step.over) if step.over else None,
            by=self._param(step.by, place, where) if step.by is not None else None,
            words=filled(words_at(step, place.symbols), place.params),
            share=share,
            pairs=str(self._param(step.pairs, place, where)) if step.pairs else "halves",
            rope=str(self._param(step.rope, place, where)) if step.rope else "",
            state=self.shape(step.state, place) if step.state else None,
        )
        opened, result = bound.taken_apart(self.library.parts)
        for axis in {axis for axes in (*opened, result) for axis in axes}:
            if axis in self.binding.underived or axis in self.binding.model.underived:
                self.binding.needed(axis, self.dims)
            self.values.read.add(axis)
        if bound.op in ("mask", "cache") and bound.by is not None:
            bound = replace(bound, by=step_checks.window(bound.by, self.binding, place.where))
        step_checks.check(bound, opened, result, self.dims, self.binding, f"{where} {at}")
        if bound.op == "top_k" and bound.over is not None:
            self.indexes[bound.sets] = bound.over
        return bound

    @staticmethod
    def _param(value: spec.Value, place: Place, where: str) -> Scalar:
        """A literal, or the value of the parameter that a text names."""
        if not isinstance(value, str):
            return value
        if value not in place.params:
            raise SpecError(f"{where}: there is no parameter {value!r}")
        return place.params[value]

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
