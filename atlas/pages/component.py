"""The page of a component: a node of the graph, or one of its weights if that has a name of its own.

`attention` is a node with four weights, and each of them, `attention.wq`, has a page; `norm` and its only weight share one.
"""

from __future__ import annotations

from atlas import spec
from atlas.analyse.parameters import calculation, counts
from atlas.graph import cites
from atlas.graph.graph import Graph, Node, Weight
from atlas.graph.words import filled, words_of
from atlas.pages.composition import Composition, latex
from atlas.pages.content import Amount, Page
from atlas.pages.parts import Parts, over


def page(parts: Parts, node: Node) -> Page:
    """The page of a node with all of its weights."""
    graph = parts.graph
    own = graph.architecture.pages.get(node.id, spec.Words())
    instances = graph.times(node.id)
    distinct = sum(graph.size(weight) for weight in node.weights if counts(graph, weight))
    return parts.page(
        node=node.id,
        kind="learned" if node.weights else "computed",
        words=over(own, _words(parts, node)),
        settings=node.params,
        inputs=[parts.value(operand, node) for operand in node.of],
        outputs=[parts.result(node.steps[-1])],
        accounting=[_amount(parts, weight, alone=len(node.weights) == 1) for weight in node.weights],
        instances=instances,
        per_instance=sum(_trained(graph, weight) for weight in node.weights),
        parameters=distinct * instances,
        stored=parts.stored(node.weights),
        sources=parts.sources(cites.of_node(graph, node)),
    )


def _words(parts: Parts, node: Node) -> spec.Words:
    """The component's words at this node. What only adds up branches shows what the branches are."""
    words = words_of(node.component, node.params)
    if not words.composed:
        return words
    text = Composition(parts.graph).residual(node.id)
    return words.model_copy(update={"text": text, "latex": latex(text)})


def page_of_weight(parts: Parts, weight: Weight) -> Page:
    """The page of one weight of a node: input and output are those of the step that applies it."""
    node = parts.nodes[weight.node]
    step = next(step for step in node.steps if weight in step.weights)
    own = parts.graph.architecture.pages.get(weight.component, spec.Words())
    inputs = [parts.value(operand, node) for operand in step.of if operand.weight is None]
    if not inputs:  # the step prepares the weight alone
        inputs = [parts.value(operand, node) for operand in node.of]
    name = weight.component.rpartition(".")[2]
    words = over(own, over(filled(weight.words, node.params), step.words))
    size, instances = _trained(parts.graph, weight), parts.graph.instances(weight)
    matrix = "The weight is stored output by input, [out, in], and applied as x Wᵀ."
    return parts.page(
        node=weight.component,
        kind="learned",
        words=words.model_copy(
            update={
                "summary": words.summary or f"A weight of {node.id}, which its step {step.words.id} applies.",
                "expression": words.expression
                or f"{name}({', '.join(dict.fromkeys(each.symbol for each in inputs))})",
            }
        ),
        inputs=inputs,
        outputs=[parts.result(step)],
        accounting=[_amount(parts, weight, alone=True)],
        instances=instances,
        per_instance=size,
        parameters=0 if parts.graph.tied_to(weight) else size * instances,
        stored=parts.stored([weight]),
        notes=[matrix] if len(weight.shape) > 1 else [],
        sources=parts.sources(cites.of_weight(parts.graph, node, weight)),
    )


def _amount(parts: Parts, weight: Weight, *, alone: bool) -> Amount:
    """A weight's line: its kind if the page is about it alone, else the component that tells it from the others."""
    matrix = "matrix" if len(weight.shape) > 1 else "vector"
    return Amount(
        (weight.words.matrix or f"Weight {matrix}") if alone else weight.component,
        calculation(parts.graph, weight),
        _trained(parts.graph, weight),
    )


def _trained(graph: Graph, weight: Weight) -> int:
    """The parameters of one instance: none of a buffer."""
    return graph.size(weight) if weight.words.trained else 0
