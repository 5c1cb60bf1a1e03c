"""What a command answers, as an object of Python: rows, one line as its repr, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

from atlas.tables.table import markdown, readable
from atlas.text import printable

MOST_ROWS = 100
"""Rows of a table in a notebook before the rest are only counted."""

MOST_CHARACTERS = 200
"""Of the one line that a result's repr is."""


class Tabular:
    """The base of results: frozen dataclasses whose field names are the JSON keys.

    A subclass is declared with `repr=False`, and names the fields that may have its rows.
    """

    __slots__ = ()

    rows_fields: ClassVar[tuple[str, ...]] = ()
    """The fields whose items are the rows; the first that is not empty counts. Without any, each field is a row."""

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the command's table as dictionaries, for `pandas.DataFrame(…)` and the like."""
        for name in self.rows_fields:
            if items := getattr(self, name):
                return [_row(item) for item in items]
        return [{"field": field.name, "value": getattr(self, field.name)} for field in fields(self)]  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={_brief(getattr(self, field.name))}" for field in fields(self))  # type: ignore[arg-type]
        line = f"{type(self).__name__}({shown})"
        return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 2]}…)"

    def _repr_markdown_(self) -> str:
        headers, cells, more = self._table()
        return markdown(headers, cells) + (f"\n\n{more}" if more else "")

    def _repr_html_(self) -> str:
        from html import escape

        headers, cells, more = self._table()
        head = "".join(f"<th>{escape(printable(header))}</th>" for header in headers)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in row) + "</tr>" for row in cells
        )
        note = f"<p>{escape(more)}</p>" if more else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def _table(self) -> tuple[list[str], list[list[str]], str]:
        rows = self.rows()
        headers = list(dict.fromkeys(key for row in rows for key in row))
        cells = [[_cell(row.get(header)) for header in headers] for row in rows[:MOST_ROWS]]
        more = f"… and {len(rows) - MOST_ROWS:,} more rows" if len(rows) > MOST_ROWS else ""
        return headers, cells, more


def _row(item: object) -> dict[str, Any]:
    """The fields of a dataclass; those of a name or an amount inside it become columns such as `name.hf`."""
    found: dict[str, Any] = {}
    for field in fields(item):  # type: ignore[arg-type]  # rows are dataclasses
        value = getattr(item, field.name)
        if isinstance(value, Mapping):
            found |= {f"{field.name}.{key}": part for key, part in value.items()}
        else:
            found[field.name] = value
    return found


def _cell(value: object) -> str:
    """A value in a notebook's table; a list of objects is only counted."""
    if isinstance(value, tuple | list) and any(is_dataclass(item) for item in value):
        return f"{len(value):,}"
    if isinstance(value, tuple | list) and any(isinstance(item, str) for item in value):
        return ", ".join(map(str, value))
    return repr(value) if is_dataclass(value) else readable(value)


def _brief(value: object) -> str:
    """A value within a repr, in a few characters."""
    if isinstance(value, tuple | list | Mapping):
        return f"<{len(value)} items>" if len(value) != 1 else "<1 item>"
    if isinstance(value, str) and len(value) > 60:
        return repr(value[:57] + "…")
    return repr(value)
