"""Arguments and options that several commands share, and the bound graph of a MODEL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas.errors import UsageError
from atlas.report import console

if TYPE_CHECKING:
    from atlas.graph.graph import Graph
    from atlas.spec.library import Library


def count(option: str) -> Callable[[object], int]:
    """A parser for an option that is a count. The command checks its minimum."""

    def parse(value: object) -> int:
        from atlas.units import whole_number

        return value if isinstance(value, int) else whole_number(str(value), option)

    return parse


ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A catalogue id (llama3.1-8b), a Hub id, or the path of a config.json, a params.json or a folder that has one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print the table as CSV, with plain integers.")]
Names = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="hf|meta",
        help="Names of components and tensors in the table: the Hub's (hf) or Meta's (meta).",
    ),
]
Specs = Annotated[
    list[Path] | None,
    typer.Option(
        "--specs",
        metavar="DIR",
        help="Also read the description files in this folder. Repeatable.",
    ),
]


def require_one_format(*, json: bool, markdown: bool, csv: bool) -> None:
    """Refuse two formats at once.

    Raises:
        UsageError: more than one of `--json`, `--markdown` and `--csv` is given.
    """
    if json + markdown + csv > 1:
        raise UsageError("--json, --markdown and --csv exclude each other")


def library_of(specs: list[Path] | None) -> Library:
    """The descriptions that come with the atlas, and those of further folders.

    Raises:
        UsageError: a folder does not exist, or has no description files.
    """
    from atlas.spec.folders import open_library

    return open_library(specs or ())


def graph_of(name: str, library: Library) -> Graph:
    """The bound graph of a MODEL. Warnings about its configuration go to stderr."""
    from atlas.graph.binding import bind
    from atlas.resolution.model import messages
    from atlas.resolution.resolve import resolve

    model = resolve(name, library)
    for warning in messages(model):
        console.warn(warning)
    return bind(model, library)
