"""`atlas explain`: the page of a model, a component, an activation, a step, a stored tensor or a topic."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.cli.options import Json, ModelName, Names, Specs, graph_of, library_of
from atlas.errors import UsageError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.graph.graph import Graph
    from atlas.pages.content import Page


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)


def explain(
    model: ModelName,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="NODE",
            help="A component (attention.wq), an activation (logits), a step of `atlas trace`, a tensor's name (q_proj) or a "
            "topic (rope, kv_cache, attention, mixture_of_experts, sliding_window, …).",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="ID=PATH",
            help="Show excerpts from this clone or file, after its hash was checked. Repeatable.",
        ),
    ] = None,
    excerpts: Annotated[
        bool,
        typer.Option("--excerpts", help="Show the cited lines that an installed package has."),
    ] = False,
    receipt: Annotated[
        Path | None,
        typer.Option(
            "--receipt",
            metavar="FILE",
            help="Cite the verified checkpoint of this receipt (`atlas verify --receipt`).",
        ),
    ] = None,
    names: Names = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Say what a model, a component or an activation is: equation, shapes, exact accounting, code and sources.

    Example: atlas explain llama3.1-8b output
    """
    from atlas import pages
    from atlas.evidence import sources
    from atlas.graph.tensors import convention
    from atlas.report import page as show

    library = library_of(specs)
    reader = sources.Reader(library, sources.locations(source or (), library)) if source or excerpts else None
    graph = graph_of(model, library)
    if names is not None:
        convention(graph, names)  # refuses a name that the architecture does not have
    made = pages.page(graph, library, node, reader)
    if reader is not None:
        for name in dict.fromkeys(code.source for code in made.code if not code.excerpt):
            reason = reader.read(name)
            if isinstance(reason, str) and (excerpts or name in reader.places):
                console.warn(f"{'--source ' if name in reader.places else ''}{name}: {reason}")
    if receipt is not None:
        made = _resting_on(made, graph, receipt)
    if json:
        console.json(made)
    else:
        show.show(made, names)


def _resting_on(made: Page, graph: Graph, path: Path) -> Page:
    """The page with a verified checkpoint in place of the configuration.

    Raises:
        UsageError: the receipt is of a model with another count.
    """
    from atlas.analyse.parameters import total
    from atlas.verification import receipt

    found = receipt.read(path)
    expected = found.checkpoint.parameters.expected
    if expected != total(graph):
        raise UsageError(
            f"--receipt {path} is of a model with {expected or 0:,} parameters, and {graph.model.id} has {total(graph):,}"
        )
    return replace(made, rests_on=receipt.rests_on(found))
