"""Binds an architecture to a model: resolves names, selects the blocks of each layer, and checks the result.

    binding      the architecture, the model, and checks of axis names and dtypes
    sizes        the size of every axis, stated or derived
    parts        the top level of the graph in execution order: nodes, and stacks of blocks
    layers       which block each layer of a stack uses
    blocks       the nodes of a block, or of a variant of one
    nodes        a component at its place
    components   its ports, weights and steps, and those of the components it uses
    place        where a component stands, and the symbols of its equations there
    values       what the names of a description mean for the model, and a component's parameters
    step_checks  whether a step's operation can give its result

Errors in a description are found here and not in an answer: an unknown axis, a port with the wrong shape, a result that the
operands cannot give, an undeclared weight.
"""

from __future__ import annotations

from atlas.graph.binding.binding import Binding
from atlas.graph.binding.parts import Parts
from atlas.graph.binding.sizes import sizes
from atlas.graph.graph import Graph
from atlas.resolution.model import Model
from atlas.spec.library import Library

__all__ = ["bind"]


def bind(model: Model, library: Library) -> Graph:
    """The model's forward pass as bound steps.

    Raises:
        ConfigError: a dimension is missing, or does not divide as the architecture needs.
        SpecError: the description contradicts itself, the vocabulary or a component.
    """
    if not model.family:
        return _graph(model, library)
    known: Graph | None = library.bound.get(model.id)
    if known is None or known.model != model:
        known = library.bound[model.id] = _graph(model, library)
    return known


def _graph(model: Model, library: Library) -> Graph:
    binding = Binding(model, library.architecture(model.architecture), library)
    return Parts(binding, sizes(binding)).graph()
