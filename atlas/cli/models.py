"""`atlas models`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Csv, Json, Markdown, Specs, library_of, require_one_format
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("models")(models)


def models(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORDS]...",
            help="Only models with all of these words in an id, name, kind, architecture or publisher.",
        ),
    ] = None,
    family: Annotated[
        str | None, typer.Option("--family", metavar="F", help="Only one family, such as llama3.1.")
    ] = None,
    publisher: Annotated[
        str | None,
        typer.Option("--publisher", metavar="P", help="Only one publisher's families, such as Meta."),
    ] = None,
    json: Json = False,
    markdown: Markdown = False,
    csv: Csv = False,
    specs: Specs = None,
) -> None:
    """List the catalogue by family: every model, its parameters, its context length and its Hub id.

    Example: atlas models --family llama3.2
    """
    from atlas.pages.catalogue import list_models
    from atlas.report import models as report

    require_one_format(json=json, markdown=markdown, csv=csv)
    result = list_models(library_of(specs), words or (), family=family, publisher=publisher)
    if json:
        console.json(result)
    elif markdown:
        report.markdown(result)
    elif csv:
        report.comma_separated(result)
    else:
        report.show(result)
