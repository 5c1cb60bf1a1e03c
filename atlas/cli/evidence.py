"""`atlas evidence check`: read every pinned source and compare the cited lines."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.report import console


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Check the cited sources of the descriptions.", no_args_is_help=True)
    group.command("check")(check)
    app.add_typer(group, name="evidence")


def check(
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="ID=PATH", help="A clone, a package or a file to read. Repeatable."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 if a source is not available.")] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Do not download sources.")] = False,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Read every cited source (from a clone, an installed package or the web) and compare the hashes of the cited lines.

    Example: atlas evidence check --source llama3=../llama3
    """
    from atlas.evidence import check as evidence
    from atlas.evidence import sources

    library = library_of(specs)
    offline = offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}
    reader = sources.Reader(library, sources.locations(source or (), library), web=not offline)
    result = evidence.check(reader)
    if json:
        console.json(result)
    else:
        wrong = [c for c in result.checks if c.status != "ok"]
        rows = [
            [c.status, c.cite, c.source, ", ".join(f"{a}–{b}" for a, b in c.lines), c.detail] for c in wrong
        ]
        if rows:
            console.out(console.table(["", "cite", "source", "lines", "found"], rows))
            console.write("")
        console.write(
            f"{result.ok} cited places match, {result.differs} differ, {result.unchecked} could not be checked"
        )
    if result.differs or (strict and result.unchecked):
        raise typer.Exit(1)
