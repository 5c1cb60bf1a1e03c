"""`atlas trace`: every step of the forward pass."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Json, ModelName, Specs, count, graph_of, library_of
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("trace")(trace)


def trace(
    model: ModelName,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch", metavar="N", parser=count("--batch"), help="Sequences; a free axis if not given."
        ),
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(
            "--positions", metavar="N", parser=count("--positions"), help="Tokens per sequence in this pass."
        ),
    ] = None,
    past: Annotated[
        int | None,
        typer.Option(
            "--past", metavar="N", parser=count("--past"), help="Positions already in the KV cache."
        ),
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """List every step in execution order: equation, shape, dtypes, parameters and FLOPs.

    Example: atlas trace llama3.1-8b --batch 1 --positions 128
    """
    from atlas.analyse.trace import Pass
    from atlas.analyse.trace import trace as traced
    from atlas.report import trace as show

    result = traced(graph_of(model, library_of(specs)), Pass(batch, positions, past))
    if json:
        console.json(result)
    else:
        show.show(result)
