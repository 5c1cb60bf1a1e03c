"""What several commands share: the arguments they take, and a MODEL made into a bound graph."""

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
    """A parser for an option that counts; its least value is for the command to say."""

    def parse(value: object) -> int:
        from atlas.units import whole_number

        return value if isinstance(value, int) else whole_number(str(value), option)

    return parse


ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A catalogue id (llama3.1-8b), a Hub id, or a path to a config.json, a params.json or a folder with one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
Specs = Annotated[
    list[Path] | None,
    typer.Option(
        "--specs",
        metavar="DIR",
        help="A folder of description files that adds to the atlas's own. Repeatable.",
    ),
]


def library_of(specs: list[Path] | None) -> Library:
    """The atlas's descriptions, and those of further folders.

    Raises:
        UsageError: a folder is not there, or holds nothing of the kind.
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
                f"--specs {folder}: there are no description files in it",
                hint=f"give the folder that holds {', '.join(PARTS[:-1])} or {PARTS[-1]}",
            )
    return Library(*(specs or ()))


def graph_of(name: str, library: Library) -> Graph:
    """The bound graph of a MODEL; its configuration's warnings go to stderr."""
    from atlas.graph.binding import bind
    from atlas.resolution.model import messages
    from atlas.resolution.resolve import resolve

    model = resolve(name, library)
    for warning in messages(model):
        console.warn(warning)
    return bind(model, library)
