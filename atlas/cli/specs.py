"""`atlas specs`: import and check description files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atlas.cli.options import Json
from atlas.errors import UsageError
from atlas.report import console


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Import and check description files.", no_args_is_help=True)
    group.command("import")(import_)
    group.command("check")(check)
    app.add_typer(group, name="specs")


def import_(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="An installed or unpacked llama_models.")],
    into: Annotated[
        Path | None,
        typer.Option(
            "--into", metavar="DIR", help="Write one TOML file for each family there instead of printing."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Read Meta's catalogue from the syntax tree of an installed or unpacked llama_models, without executing it.

    Example: atlas specs import site-packages/llama_models --into specs/catalogue
    """
    from atlas.files import write_whole
    from atlas.resolution.catalogue_import.reader import read_catalogue, to_toml

    catalogue = read_catalogue(folder)
    if into is not None:
        if not into.is_dir():
            raise UsageError(f"--into {into}: no such folder")
        for stem, text in to_toml(catalogue).items():
            write_whole(into / f"{stem}.toml", text)
            console.note(f"wrote {into / f'{stem}.toml'}")
    if json:
        console.json(catalogue)
    elif into is None:
        console.write("\n".join(to_toml(catalogue).values()).rstrip("\n"))


def check(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="A folder of description files; the built-in ones by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Check description files: every table, every reference, and every model bound to its architecture.

    Example: atlas specs check my-specs
    """
    from atlas.cli.options import library_of
    from atlas.graph.check import check as checked

    result = checked(library_of([folder] if folder else None))
    if json:
        console.json(result)
    else:
        for fault in result.faults:
            console.write(fault)
        console.write(
            f"components {result.components}, architectures {result.architectures}, models described {result.models}: "
            + (f"faults {len(result.faults)}" if result.faults else "no faults")
        )
    if result.faults:
        raise typer.Exit(1)
