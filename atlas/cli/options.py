"""Arguments and options that several commands share, and the bound graph of a MODEL."""

from __future__ import annotations

import os
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
    from atlas.spec.library import PARTS, Library

    for folder in specs or ():
        try:
            names = set(os.listdir(folder))
        except FileNotFoundError:
            raise UsageError(f"--specs {folder}: no such folder") from None
        except OSError as error:
            raise UsageError(f"--specs {folder}: cannot be read: {error.strerror or error}") from None
        except ValueError:
            raise UsageError(f"--specs {str(folder)!r} is not a path") from None
        if names.isdisjoint(PARTS):
            raise UsageError(
                f"--specs {folder}: the folder has no description files",
                hint=f"give the folder that has {', '.join(PARTS[:-1])} or {PARTS[-1]}",
            )
    return Library(*(specs or ()))


def graph_of(name: str, library: Library) -> Graph:
    """The bound graph of a MODEL. Warnings about its configuration go to stderr."""
    from atlas.graph.binding import bind
    from atlas.resolution.resolve import resolve

    model = resolve(name, library)
    for warning in model.warnings:
        console.warn(warning)
    return bind(model, library)
