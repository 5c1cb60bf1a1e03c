"""Binds an architecture to a model: resolves every name, chooses the blocks of every layer, and checks all of it.

    binding      the architecture and the model, and the axes and dtypes that their words must be
    sizes        the size of every axis, given or derived
    parts        the graph's top level in execution order: nodes, and stacks of blocks
    layers       which of a stack's blocks stands in which layer
    nodes        a component in its place: ports, parameters, weights, steps

What a description gets wrong shows here and not in an answer: an unknown axis, a port given another shape than it
wants, a result its operands cannot give, a weight no component has.
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
