"""The pages of every sample: each node, weight, activation and step has a sentence, an equation and shapes."""

from __future__ import annotations

import pytest

from atlas.analyse import parameters
from atlas.api.model import Model
from atlas.graph.binding import bind
from atlas.resolution import config
from atlas.spec.library import Library

SAMPLES = {
    id: settings
    for name in Library().paths("architectures")
    for id, settings in Library().samples(Library().architecture(name)).items()
}


def test_the_equation_is_that_of_the_parameters(library: Library) -> None:
    """No rotation on the page of a model that has none, and a cap, a sink or a bias where there is one."""
    equations = {
        name: Model(
            bind(
                config.describe(library.samples(library.architecture(name))[name], library, id=name), library
            ),
            library,
        )
        .explain("attention")
        .expression
        for name in ("gpt2", "bloom", "gemma2", "gpt_oss", "qwen3", "granite")
    }
    assert {name: "rotate" in text for name, text in equations.items()} == {
        "gpt2": False,
        "bloom": False,
        "gemma2": True,
        "gpt_oss": True,
        "qwen3": True,
        "granite": True,
    }
    assert "/ sqrt(head_dim)" in equations["qwen3"]
    assert "* scale" in equations["granite"]
    assert "slope" in equations["bloom"]
    assert "softcap" in equations["gemma2"]
    assert "sinks" in equations["gpt_oss"]


@pytest.mark.parametrize("id", SAMPLES)
def test_every_page(id: str, library: Library) -> None:
    graph = bind(config.describe(SAMPLES[id], library, id=id), library)
    model = Model(graph, library)
    whole = model.explain()
    assert whole.equation.text
    assert whole.equation.latex
    assert whole.sources
    nodes = {node.id: node for block in graph.blocks for node in block.nodes}
    assert sum(model.explain(node).parameters for node in nodes) == parameters.total(graph)
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
        for target in dict.fromkeys(name for step in node.steps for name in (step.id, step.sets)):
            page = model.explain(target)
            assert page.title, target
            assert page.summary, target
            assert page.equation.text, target
            assert page.equation.latex, target
            assert page.outputs, target
            assert page.sources, target
