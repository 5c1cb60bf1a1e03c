"""Binds a node: a component at its place in the graph."""

from __future__ import annotations

from collections.abc import Mapping

from atlas import spec
from atlas.grammar.conditions import ConditionFault, holds
from atlas.grammar.shapes import Shape
from atlas.graph.binding.binding import Binding
from atlas.graph.binding.components import Components
from atlas.graph.binding.place import Place, weight_ids
from atlas.graph.binding.values import Params, Values
from atlas.graph.graph import Node, Operand


class Nodes:
    """Binds nodes in execution order.

    Args:
        dims: the size of every axis that has one (from `atlas.graph.binding.sizes`).
    """

    def __init__(self, binding: Binding, dims: Mapping[str, int], values: Values) -> None:
        self.binding, self.values = binding, values
        self.components = Components(binding, dims, values)

    def is_there(self, when: str | None, where: str) -> bool:
        """Whether a condition on the architecture's values is met.

        Raises:
            SpecError: it names something that has no value.
        """
        try:
            return holds(when, self.values)
        except ConditionFault as error:
            raise self.binding.fault(where, error.message) from None

    def bind(self, node: spec.Node, known: dict[str, Shape], axes: Mapping[str, str]) -> Node:
        """Bind a node and add its result and its inner symbols to `known`.

        Args:
            axes: renamed by the stack and the block.
        """
        name = self.binding.architecture.instead.get(node.component, node.component)
        component = self.binding.library.component(name)
        self.binding.known_renames(node.axes, node.id)
        given = [node.of] if isinstance(node.of, str) else node.of
        operands = []
        for source in given:
            if source not in known:
                raise self.binding.fault(node.id, f"is of {source!r}, which no earlier node sets")
            operands.append(Operand(source, known[source]))
        params = Params(component, node.given, self.values, self.binding, node.id)
        place = Place(node.id, (), component, {**axes, **node.axes}, params, None)
        lead = self.components.lead(place, [operand.shape for operand in operands])
        place = Place(node.id, (), component, place.axes, params, lead)
        scope = self.components.ports(place, operands)
        ports = tuple(scope.values())
        steps, weights = self.components.steps(place, scope)
        known |= {step.sets: step.shape for step in steps}
        last = steps[-1]
        known[node.id] = last.shape
        if last.sets in self.components.indexes:
            self.components.indexes[node.id] = self.components.indexes[last.sets]
        return Node(
            id=node.id,
            component=component,
            of=ports,
            steps=tuple(steps),
            weights=tuple(weights),
            sets=last.sets,
            shape=last.shape,
            declared=weight_ids(component, self.binding.library, node.id),
            params=params,
        )
