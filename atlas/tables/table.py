"""One table for every format: for people (terminal, Markdown) and for programs (CSV)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from atlas.text import printable

Cell = str | int | float | tuple[int | str, ...] | None
"""A tuple is a shape; None is an empty cell."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        title: the heading for people; None for a column that only programs get.
        key: the heading in CSV, in ASCII; by default the title in snake_case. None for a column that only people get.
        right: whether the cells are aligned right, as numbers are.
    """

    title: str | None
    key: str | None = ""
    right: bool = False

    @property
    def heading(self) -> str:
        """The heading in CSV."""
        return self.key or "_".join((self.title or "").lower().split())


@dataclass(frozen=True, slots=True)
class Table:
    """Columns, rows of values, and a total that is shown to people but is no row of the CSV."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None = None

    def headers(self) -> list[str]:
        """The headings for people."""
        return [column.title for column in self.columns if column.title is not None]

    def cells(self) -> list[list[str]]:
        """The cells for people, the total last."""
        shown = [i for i, column in enumerate(self.columns) if column.title is not None]
        rows = (*self.rows, self.total) if self.total is not None else self.rows
        return [[readable(row[i]) for i in shown] for row in rows]

    def right(self) -> list[int]:
        """Which of the columns for people are aligned right."""
        return [i for i, column in enumerate(c for c in self.columns if c.title is not None) if column.right]

    def markdown(self) -> str:
        return markdown(self.headers(), self.cells(), self.right())

    def csv(self) -> str:
        """CSV for programs: plain integers, shapes as `4096x4096`, ASCII headings, no total."""
        kept = [i for i, column in enumerate(self.columns) if column.key is not None]
        headers = [self.columns[i].heading for i in kept]
        return comma_separated(headers, ([machine_readable(row[i]) for i in kept] for row in self.rows))


def readable(cell: object) -> str:
    """A value for people: `4,096`, `4,096 × 4,096`."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 1e4 else f"{cell:,.0f}"
    if isinstance(cell, tuple | list):
        return " × ".join(map(readable, cell))
    return str(cell)


def machine_readable(cell: object) -> str:
    """A value for programs: `4096`, `4096x4096`."""
    if isinstance(cell, tuple | list):
        return "x".join(map(machine_readable, cell))
    if isinstance(cell, bool):
        return str(cell).lower()
    return "" if cell is None else str(cell)


def markdown(headers: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """A GitHub table. A cell cannot end the table, or become HTML or a link.

    Args:
        right: the columns aligned right.
    """
    rules = ["---:" if i in right else "---" for i in range(len(headers))]
    lines = [
        "| " + " | ".join(map(_in_markdown, headers)) + " |",
        "| " + " | ".join(rules) + " |",
        *("| " + " | ".join(map(_in_markdown, row)) + " |" for row in rows),
    ]
    return "\n".join(lines)


def _in_markdown(cell: str) -> str:
    shown = printable(cell).replace("\\", "\\\\").replace("|", "\\|")
    return shown.replace("<", "&lt;").replace("](", "]\\(")


def comma_separated(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """CSV as spreadsheets and `csv.reader` read it."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for row in (headers, *rows):
        writer.writerow([printable(str(cell)) for cell in row])
    return text.getvalue().rstrip("\n")
