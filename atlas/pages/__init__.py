"""What each page of the atlas says, as plain data: of a model, a component, or an activation.

A page is made from the bound graph alone, so that no figure on it can differ from the table, the trace or the run.
Here a name finds its page; each kind of page has a file, and `parts` is what all of them are made of.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from atlas.errors import UsageError
from atlas.evidence.check import excerpt
from atlas.evidence.sources import Reader
from atlas.graph.graph import Graph
from atlas.pages import activation, component, model
from atlas.pages.content import Code, Page
from atlas.pages.parts import Parts
from atlas.resolution.model import require_described
from atlas.spec.library import Library

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
    full = _full_name(parts, name, [*parts.nodes, *weights, *parts.graph.inputs])
    if full in parts.nodes:
        return component.page(parts, parts.nodes[full])
    if full in weights:
        return component.page_of_weight(parts, weights[full])
    if full in parts.graph.inputs:
        return activation.page_of_input(parts, full)
    return activation.page(parts, name, parts.setting(full))


def _full_name(parts: Parts, name: str, others: Sequence[str]) -> str:
    """What is called that, in full: by its whole name or its last word, whatever the case.

    Args:
        others: what is no activation, and comes first: of `norm`, the component.

    Raises:
        UsageError: nothing is, or several activations are.
    """
    activations = list(dict.fromkeys(step.sets for step in parts.steps()))
    wanted = name.casefold()
    for full in [*others, *activations]:
        if full.casefold() == wanted:
            return full
    found = [full for full in others if full.rpartition(".")[2].casefold() == wanted]
    found = found or [full for full in activations if full.partition(".")[2].casefold() == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        what = "components" if found[0] in others else "activations"
        raise UsageError(f"several {what} are called {name!r}", hint=f"say which: {', '.join(found)}")
    everything = names(parts.graph)
    spelled = {short: full for full in everything for short in (full.rpartition(".")[2], full)}
    near = [spelled[word] for word in difflib.get_close_matches(name, spelled, n=4)]
    raise UsageError(
        f"{parts.model.id} has neither a component nor an activation called {name!r}",
        hint=f"did you mean {', '.join(dict.fromkeys(near))}?" if near else _some_names(parts),
    )


def _some_names(parts: Parts) -> str:
    components = [*parts.nodes, *(weight.component for weight in parts.graph.weights.values())]
    return f"components are {', '.join(dict.fromkeys(components))}; activations are what they hand on, such as logits"
