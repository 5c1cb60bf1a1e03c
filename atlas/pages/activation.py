"""The page of an activation (the result of one or more steps), of a single step, or of an input of the model."""

from __future__ import annotations

from collections.abc import Sequence

from atlas import spec
from atlas.graph import cites
from atlas.graph.graph import Step
from atlas.pages.content import Page
from atlas.pages.parts import Parts, over


def page(parts: Parts, name: str, steps: Sequence[Step]) -> Page:
    """The page of an activation.

    Args:
        name: the name in the request; the title if the description has none.
        steps: those that set it, in execution order: an optional step sets an earlier step's symbol again.
    """
    node = parts.nodes[steps[0].node]
    first, last = steps[0], steps[-1]
    pages = parts.graph.architecture.pages
    own = pages.get(last.sets, spec.Words())
    words = over(own, first.words)
    equations = {step.words.text: step.words.latex for step in steps}
    of_node = cites.of_node(parts.graph, node)
    of_steps = [cite for step in steps for cite in cites.of_step(parts.graph, step)]
    if last is node.steps[-1] or not of_steps:
        of_steps += of_node
    inputs = [
        parts.value(o, node) for step in steps for o in step.of if o.weight is None and o.name != last.sets
    ]
    return parts.page(
        node=last.sets,
        kind="activation",
        words=words.model_copy(
            update={
                "title": words.title or name,
                "summary": words.summary or f"Made by {node.id}, step {last.words.id}.",
                "expression": words.expression or f"{node.id} → {last.sets.partition('.')[2]}",
                "text": ";  ".join(equations),
                "latex": r",\quad ".join(equations.values()),
            }
        ),
        inputs=list(dict.fromkeys(inputs)),
        outputs=[parts.result(last)],
        instances=parts.graph.times(node.id),
        sources=parts.sources(dict.fromkeys(of_steps)),
    )


def page_of_step(parts: Parts, step: Step) -> Page:
    """The page of one step among several that set the same activation: its own equation, input and output."""
    node = parts.nodes[step.node]
    words = step.words
    return parts.page(
        node=step.id,
        kind="step",
        words=words.model_copy(
            update={
                "title": words.title or step.id,
                "summary": words.summary
                or f"A step of {node.id}: the operation {step.op}, which sets {step.sets}.",
                "expression": words.expression or f"{node.id} → {step.sets.partition('.')[2]}",
            }
        ),
        inputs=list(dict.fromkeys(parts.value(o, node) for o in step.of if o.weight is None)),
        outputs=[parts.result(step)],
        instances=parts.graph.times(node.id),
        sources=parts.sources(cites.of_step(parts.graph, step) or cites.of_node(parts.graph, node)),
    )


def page_of_input(parts: Parts, name: str) -> Page:
    """The page of an input of the model, such as `tokens`."""
    words = parts.graph.inputs[name]
    return parts.page(node=name, kind="input", words=words, outputs=[parts.named(name)])
