"""The content of each page, as plain data: of a model, a component, an activation, a step or a topic.

A page is made from the bound graph alone, so that no figure on it can differ from the table, the trace or the run.
`lookup` finds what a name means, each kind of page has a file, and `parts` has what all of them are made of. May be
imported by `api`, `report` and `cli`.
"""

from __future__ import annotations

from dataclasses import replace

from atlas import spec
from atlas.evidence.check import excerpt
from atlas.evidence.sources import Reader
from atlas.graph.graph import Graph, Node, Step, Weight
from atlas.pages import activation, component, model, topic
from atlas.pages.content import Code, Page
from atlas.pages.lookup import find, names
from atlas.pages.parts import Parts
from atlas.spec.library import Library

__all__ = ["names", "page"]


def page(graph: Graph, library: Library, node: str | None = None, reader: Reader | None = None) -> Page:
    """The page of a model, or of anything in it that has a name.

    A setting that is not described is named on the page (`not_described`); shapes and counts do not depend on it.

    Args:
        node: a component (`output`, `attention.wq`), an activation (`logits`), an input, a step, a stored tensor's name or a
            part of one (`q_proj`), or a topic (`rope`); None for the model itself.
        reader: where to read sources for excerpts; None for no excerpts.

    Raises:
        UsageError: nothing in the model has that name, or several things have.
        SourceError: a source does not have the lines that are cited.
    """
    made = _made(Parts(graph, library), node)
    if reader is None:
        return made
    return replace(made, code=tuple(_with_excerpt(code, made, reader) for code in made.code))


def _with_excerpt(code: Code, made: Page, reader: Reader) -> Code:
    cited = next(item for item in made.sources if (item.source, item.lines) == (code.source, code.lines))
    lines = excerpt(reader, code.source, code.lines, cited.sha256) if code.lines else None
    return replace(code, excerpt=tuple(lines or ()))


def _made(parts: Parts, name: str | None) -> Page:
    if name is None:
        return model.page(parts)
    target = find(parts, name)
    if isinstance(target, Node):
        return component.page(parts, target)
    if isinstance(target, Weight):
        return component.page_of_weight(parts, target)
    if isinstance(target, spec.Topic):
        return topic.page(parts, target)
    if isinstance(target, Step):
        return activation.page_of_step(parts, target)
    if target in parts.graph.inputs:
        return activation.page_of_input(parts, target)
    return activation.page(parts, name, parts.setting(target))
