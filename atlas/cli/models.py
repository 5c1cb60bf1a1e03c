"""`atlas models`: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("models")(models)


def models(
    family: Annotated[
        str | None, typer.Option("--family", metavar="F", help="Only one family, such as llama3.1.")
    ] = None,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """List the catalogue: every model, its family, and whether it is described.

    Example: atlas models --family llama3.2
    """
    from atlas.pages.catalogue import list_models

    result = list_models(library_of(specs), family=family)
    if json:
        console.json(result)
        return
    rows = [
        [
            m.id,
            m.kind,
            "" if m.parameters is None else f"{m.parameters:,}",
            "" if m.context_length is None else f"{m.context_length:,}",
            m.hub_id or "",
        ]
        for m in result.models
    ]
    console.out(console.table(["id", "kind", "parameters", "context", "on the Hub as"], rows, right=[2, 3]))
    undescribed = sum(not m.described for m in result.models)
    if undescribed:
        console.note(
            f"{undescribed} models are in the catalogue but not described yet: they have no parameter count"
        )
