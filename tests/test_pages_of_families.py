"""The pages of every architecture's first sample: each node, weight and step has a sentence, an equation and shapes."""

from __future__ import annotations

import pytest

from atlas.api.model import Model
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.library import Library

ARCHITECTURES = [name for name in Library().paths("architectures") if not Library().architecture(name).base]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_page(name: str, library: Library) -> None:
    id, settings = next(iter(library.samples(library.architecture(name)).items()))
    graph = bind(config.describe(settings, library, id=id), library)
    model = Model(graph, library)
    nodes = {node.id: node for block in graph.blocks for node in block.nodes}
    for node in nodes.values():
        for target in [node.id, *(weight.component for weight in node.weights)]:
            page = model.explain(target)
            assert page.title, target
            assert page.summary.endswith("."), target
            assert page.expression, target
            assert page.inputs, target
            assert page.outputs, target
            assert page.sources, target
        page = model.explain(node.id)
        assert page.equation.text, node.id
        assert page.equation.latex, node.id
        for step in node.steps:
            page = model.explain(step.id)
            assert page.equation.text, step.id
            assert page.equation.latex, step.id
            assert page.outputs, step.id
