"""`atlas trace`: every step of the forward pass."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import (
    Csv,
    Json,
    Markdown,
    ModelName,
    Names,
    Specs,
    count,
    graph_of,
    library_of,
    require_one_format,
)
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
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer", metavar="N", parser=count("--layer"), help="Only this layer, counted from 0."
        ),
    ] = None,
    component: Annotated[
        str | None,
        typer.Option(
            "--component", metavar="C", help="Only this component: attention, attention.wq, q_proj, mlp."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="List every layer; by default, layers alike are one row per step.")
    ] = False,
    names: Names = None,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """List every step in execution order: equation, shape, dtypes, parameters and FLOPs.

    Example: atlas trace llama3.1-8b --batch 1 --positions 128
    """
    from atlas.analyse.folding import select
    from atlas.analyse.labels import convention_of, labels
    from atlas.analyse.trace import Pass
    from atlas.analyse.trace import trace as traced
    from atlas.report import trace as show

    require_one_format(json=json, markdown=markdown, csv=csv)
    graph = graph_of(model, library_of(specs))
    result = select(traced(graph, Pass(batch, positions, past)), graph, layer, component)
    shown_names = labels(graph, convention_of(graph, names))
    if json:
        console.json(result)
    elif markdown:
        show.markdown(result, shown_names, every=every)
    elif csv:
        show.comma_separated(result, shown_names)
    else:
        show.show(result, shown_names, every=every)
