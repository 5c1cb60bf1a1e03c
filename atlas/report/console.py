"""The one place that writes to the terminal: results to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from atlas.report.plain import dumps

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

WIDE = 100_000
"""Columns where output goes to a file or a pipe: nothing is cut there."""

quiet = False
"""Whether notes and warnings are left out (`--quiet`)."""


def console(stream: IO[str]) -> Console:
    from rich.console import Console

    width = None if stream.isatty() or "COLUMNS" in os.environ else WIDE
    return Console(file=stream, width=width, highlight=False, soft_wrap=False, emoji=False)


def out(*things: RenderableType) -> None:
    """A result, to stdout."""
    target = console(sys.stdout)
    with target.capture() as captured:
        for thing in things:
            target.print(thing, markup=False)
    for line in captured.get().splitlines():
        write(line.rstrip())


def write(text: str) -> None:
    """A result as it stands, to stdout."""
    sys.stdout.write(text + "\n")


def json(value: Any) -> None:
    """One JSON document on stdout, and nothing else there."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    write(dumps(value, ascii_only=not encoding.startswith("utf")))


def warn(text: str) -> None:
    """A warning or a note, to stderr."""
    if not quiet:
        print(f"warning: {text}", file=sys.stderr)


def note(text: str) -> None:
    if not quiet:
        print(f"note: {text}", file=sys.stderr)


def error(message: str, hint: str = "") -> None:
    """An error in one line, to stderr."""
    line = f"error: {message}" + (f"; {hint}" if hint else "")
    print(" ".join(line.split()), file=sys.stderr)


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = (), title: str = ""
) -> RenderableType:
    """A table without frames, which reads and greps well; the last row may be a total.

    Args:
        right: the columns set flush right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(box=SIMPLE_HEAD, title=title or None, title_justify="left", pad_edge=False, show_edge=False)
    for i, header in enumerate(headers):
        made.add_column(header, justify="right" if i in right else "left", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    return made
