"""`atlas verify`: a checkpoint held against what the description declares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atlas.cli.options import Json, Specs, library_of
from atlas.errors import UsageError
from atlas.report import console


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    ctx: typer.Context,
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="A checkpoint's folder, its index, or a weight file."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="What it should be; by default what the configuration beside says.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="CODES",
            help="Leave out findings of these codes (dtype,tied). What cannot be read stays.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors.")] = False,
    json: Json = False,
    specs: Specs = None,
) -> None:
    """Check the name, shape and dtype of every tensor of a checkpoint, without reading a weight.

    Exit 0 where all of it is as declared, 1 where something differs, 2 where something cannot be read.

    Example: atlas verify ./Llama-3.1-8B --model llama3.1-8b
    """
    from atlas.checkpoint import local
    from atlas.report import verify as show
    from atlas.verify import verify as verified

    if path is None:
        raise UsageError("there is nothing to verify: give a PATH", hint=" ".join(ctx.get_usage().split()))
    codes = _codes(ignore or [])
    store, only = local.at(path)
    result = verified(
        store, library_of(specs), only=only, model=model, ignore=codes, strict=strict, warn=console.warn
    )
    if json:
        console.json(result)
    else:
        show.show(result)
    raise typer.Exit(result.exit_code)


def _codes(words: list[str]) -> frozenset[str]:
    """The codes in `dtype,tied`.

    Raises:
        UsageError: there is no such code.
    """
    from atlas.checkpoint.findings import CODES

    codes = frozenset(code.strip().lower() for word in words for code in word.split(",") if code.strip())
    if unknown := sorted(codes.difference(CODES)):
        raise UsageError(
            f"--ignore: no finding has the code {', '.join(unknown)}", hint=f"there are {', '.join(CODES)}"
        )
    return codes
