"""What each page of the atlas says, as plain data: of a model, a component, or an activation.

A page is made from the bound graph alone, so that no figure on it can differ from the table, the trace or the run.
Here a name finds its page; each kind of page has a file, and `parts` is what all of them are made of.
"""

from __future__ import annotations

import difflib
from dataclasses import replace

from atlas.errors import UsageError
from atlas.evidence import excerpt
from atlas.graph import Graph, Step
from atlas.library import Library
from atlas.model import require_described
from atlas.page import Code, Page
from atlas.pages import activation, component, model
from atlas.pages.parts import Parts
from atlas.sources import Reader

__all__ = ["names", "page"]


def page(graph: Graph, library: Library, node: str | None = None, reader: Reader | None = None) -> Page:
    """The page of a model, or of a component or an activation in it.

    Args:
        node: a component's id (`output`, `attention.wq`), an activation (`logits`, `attention.scores`), an input, or
            None for the model itself.
        reader: where sources may be read for excerpts; without one none are shown.

    Raises:
        UsageError: nothing in the model is called that, or several activations are; with their full names.
        NotDescribed: the model computes something that is not described.
        SourceError: a source at hand does not hold the lines that are cited.
    """
    require_described(graph.model, "explain")
    made = _made(Parts(graph, library), node)
    return (
        made
        if reader is None
        else replace(made, code=tuple(_with_excerpt(code, made, reader) for code in made.code))
    )


def names(graph: Graph) -> list[str]:
    """Everything that has a page, in execution order: inputs, components, activations."""
    found = list(graph.inputs)
    for block in graph.blocks:
        for node in block.nodes:
            found += [
                node.id,
                *(weight.component for weight in node.weights),
                *(step.sets for step in node.steps),
            ]
    return list(dict.fromkeys(found))


def _with_excerpt(code: Code, made: Page, reader: Reader) -> Code:
    cited = next(item for item in made.sources if (item.source, item.lines) == (code.source, code.lines))
    lines = excerpt(reader, code.source, code.lines, cited.sha256) if code.lines else None
    return replace(code, excerpt=tuple(lines or ()))


def _made(parts: Parts, name: str | None) -> Page:
    if name is None:
        return model.page(parts)
    weights = {weight.component: weight for weight in parts.graph.weights.values()}
    if name in parts.nodes:
        return component.page(parts, parts.nodes[name])
    if name in weights:
        return component.page_of_weight(parts, weights[name])
    if name in parts.graph.inputs:
        return activation.page_of_input(parts, name)
    steps = _setting(parts, name)
    if steps:
        return activation.page(parts, name, steps)
    everything = names(parts.graph)
    near = difflib.get_close_matches(
        name, [*everything, *(full.rpartition(".")[2] for full in everything)], n=4
    )
    raise UsageError(
        f"{parts.model.id} has neither a component nor an activation called {name!r}",
        hint=f"did you mean {', '.join(dict.fromkeys(near))}?" if near else _some_names(parts),
    )


def _some_names(parts: Parts) -> str:
    components = [*parts.nodes, *(weight.component for weight in parts.graph.weights.values())]
    return f"components are {', '.join(dict.fromkeys(components))}; activations are what they hand on, such as logits"


def _setting(parts: Parts, name: str) -> list[Step]:
    """The steps that set an activation, by its full name or, where only one node has it, its last word."""
    full = parts.setting(name)
    if full:
        return full
    short = [step for step in parts.steps() if step.sets.partition(".")[2] == name]
    owners = list(dict.fromkeys(step.sets for step in short))
    if len(owners) > 1:
        raise UsageError(f"several activations are called {name!r}", hint=f"say which: {', '.join(owners)}")
    return short
