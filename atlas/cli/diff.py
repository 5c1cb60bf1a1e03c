"""`atlas diff`: what differs between two models."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Json, Specs, graph_of, library_of
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("diff")(diff)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A model: catalogue id, Hub id or path.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The model to compare with.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if they differ.")] = False,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Compare two models: dimensions, settings, components, tensors and totals. Weights are not compared.

    Example: atlas diff llama3-8b llama3.1-8b
    """
    from atlas.analyse.diff import diff as compared
    from atlas.report import diff as show

    library = library_of(specs)
    result = compared(graph_of(a, library), graph_of(b, library))
    if json:
        console.json(result)
    else:
        show.show(result)
    if exit_code and result.differs:
        raise typer.Exit(1)
