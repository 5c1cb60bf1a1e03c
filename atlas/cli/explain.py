"""`atlas explain`: the page of a model, a component or an activation."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Json, ModelName, Specs, graph_of, library_of
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)


def explain(
    model: ModelName,
    node: Annotated[
        str | None,
        typer.Argument(
            metavar="[NODE]", help="A component (output, attention.wq) or an activation (logits, scores)."
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            metavar="ID=PATH",
            help="Show excerpts from this clone or file, its hash checked. Repeatable.",
        ),
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Say what a model, a component or an activation is: equation, shapes, exact accounting, code and sources.

    Example: atlas explain llama3.1-8b output
    """
    from atlas import evidence, pages
    from atlas.report import page as show

    library = library_of(specs)
    reader = evidence.Reader(library, evidence.locations(source or (), library))
    made = pages.page(graph_of(model, library), library, node, reader)
    if json:
        console.json(made)
    else:
        show.show(made)
