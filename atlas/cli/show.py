"""`atlas show`: the facts of a model on one screen, several models side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Csv, Json, Markdown, Specs, graph_of, library_of, require_one_format
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL…", help="Catalogue ids, Hub ids or paths; several are shown side by side."
        ),
    ],
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """Show a model on one screen: sizes, context, RoPE, dtype, parameters, bytes, KV cache per token.

    Example: atlas show llama3.1-8b llama3.2-1b
    """
    from atlas.analyse.show import show as shown
    from atlas.report import show as report

    require_one_format(json=json, markdown=markdown, csv=csv)
    library = library_of(specs)
    result = shown([graph_of(model, library) for model in models], library)
    if json:
        console.json(result)
    elif csv:
        report.comma_separated(result)
    else:
        report.show(result, markdown=markdown)
