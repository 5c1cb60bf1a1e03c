"""`atlas show`: the facts of a model on one screen, several models side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from atlas.cli.options import Csv, Json, Markdown, Specs, graph_of, library_of, require_one_format
from atlas.errors import AtlasError, UndescribedConfigError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.spec.library import Library


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
    try:
        result = shown([graph_of(model, library) for model in models], library)
    except UndescribedConfigError as error:
        if len(models) > 1 or csv or markdown:
            raise
        _show_headers(models[0], library, error, json=json)
    if json:
        console.json(result)
    elif csv:
        report.comma_separated(result)
    else:
        report.show(result, markdown=markdown)


def _show_headers(model: str, library: Library, error: UndescribedConfigError, *, json: bool) -> NoReturn:
    """Show what the headers of a checkpoint say whose model is not described, and exit with 2.

    Raises:
        UndescribedConfigError: there are no weights whose headers could be read.
    """
    from atlas.api.checkpoint import open_store
    from atlas.checkpoint import hub_url
    from atlas.report import verify as report
    from atlas.verification import verify

    path = Path(model).expanduser()
    where = path if path.is_dir() else path.parent if path.exists() else hub_url.repository(model)
    try:
        store, only = open_store(where, None, download=False, deep=False)
        result = verify(store, library, only=only)
    except AtlasError:
        raise error from None
    if json:
        console.json(result)
    else:
        report.show(result)
    raise typer.Exit(2)
