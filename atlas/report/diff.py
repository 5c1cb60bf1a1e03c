"""The tables of `atlas diff`: of two models and of two traces; as Markdown or CSV, one table with all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from atlas.analyse.diff import Diff
from atlas.analyse.trace_diff import TraceDiff
from atlas.report import console
from atlas.tables import Cell, Column, Table

MOST = 10
"""Tensors or steps listed per kind; further ones are only counted."""

MOST_ROWS = 200
"""Rows of a table in the terminal; further ones are only counted."""

LONGEST_NAME = 32
"""Characters of a model's id or a file's path as a heading; if one is longer, the headings are A and B."""

LONGEST = 100
"""Characters of a setting's value in the terminal."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a comparison.

    Attributes:
        kind: the first column in Markdown and CSV: `setting`, `tensor`.
        title: the heading of the names in the terminal.
        rows: (name, value in A, value in B).
        total: the last row; empty if there is none.
        listed: print the names as a list, for tensors that only one model has.
    """

    kind: str
    title: str
    rows: tuple[tuple[str, object, object], ...]
    total: tuple[str, object, object] | None = None
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison, ready to be printed: its sections, and the sentences before and after them."""

    a: str
    b: str
    sections: tuple[Section, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def models(result: Diff, names: Mapping[str, str]) -> Comparison:
    """The comparison of two models.

    Args:
        names: component -> its name in the convention that is shown.
    """
    if not result.differs:
        sentence = f"{result.a} and {result.b}: same architecture and tensor shapes; weights not compared"
        return Comparison(result.a, result.b, (), (sentence,))
    described = [(row.name, row.a, row.b) for row in result.settings if row.described]
    beyond = [(row.name, row.a, row.b) for row in result.settings if not row.described]
    sections = [
        Section("dimension", "dimension", tuple((dim.name, dim.a, dim.b) for dim in result.dims)),
        Section("setting", "setting", tuple(described)),
        Section("setting (not described)", "setting (not described)", tuple(beyond)),
        Section(
            "parameters",
            "parameters",
            tuple((names.get(row.id, row.id), row.a, row.b) for row in result.components),
            ("total", result.totals["a"], result.totals["b"]),
        ),
        Section(
            "tensor",
            f"tensors only in {result.a}",
            tuple((name, "present", None) for name in result.tensors.only_a),
            listed=True,
        ),
        Section(
            "tensor",
            f"tensors only in {result.b}",
            tuple((name, None, "present") for name in result.tensors.only_b),
            listed=True,
        ),
        Section("tensor", "tensor shape", tuple((row.name, row.a, row.b) for row in result.tensors.shape)),
    ]
    same = ["tensors have the same names and shapes"] if result.same_tensors else []
    after = (*same, "weights are not compared")
    return Comparison(result.a, result.b, tuple(part for part in sections if part.rows), (), after)


def traces(result: TraceDiff) -> Comparison:
    """The comparison of two traces."""
    count = f"{result.steps['a']:,} and {result.steps['b']:,} steps"
    if not result.differs:
        return Comparison(
            result.a, result.b, (), (f"{result.a} and {result.b}: same trace, {result.steps['a']:,} steps",)
        )
    before = [f"{result.a} and {result.b}: {count}"]
    before += [f"first difference in {result.first}"] if result.first else []
    before += [] if result.same_order else ["the steps that both have come in another order"]
    sections = (
        Section(
            "trace", "trace", tuple((row.field, row.a, row.b) for row in result.changed if row.step is None)
        ),
        Section(
            "step",
            "step",
            tuple(
                (f"{row.step} {row.field}", row.a, row.b) for row in result.changed if row.step is not None
            ),
        ),
        Section(
            "step",
            f"steps only in {result.a}",
            tuple((id, "present", None) for id in result.only_a),
            listed=True,
        ),
        Section(
            "step",
            f"steps only in {result.b}",
            tuple((id, None, "present") for id in result.only_b),
            listed=True,
        ),
    )
    return Comparison(result.a, result.b, tuple(part for part in sections if part.rows), tuple(before))


def show(found: Comparison, *, markdown: bool = False, csv: bool = False) -> None:
    """Print a comparison."""
    if markdown or csv:
        columns = (Column("kind"), Column("name"), Column(found.a, "a"), Column(found.b, "b"))
        rows = ((part.kind, name, _cell(a), _cell(b)) for part in found.sections for name, a, b in part.rows)
        console.print_table(Table(columns, tuple(rows)), markdown=markdown, csv=csv)
        return
    for line in found.before:
        console.line(line)
    if found.sections and max(len(found.a), len(found.b)) > LONGEST_NAME:
        console.line(f"A  {found.a}")
        console.line(f"B  {found.b}")
        console.line()
        found = replace(found, a="A", b="B")
    for i, part in enumerate(found.sections):
        if i or found.before:
            console.line()
        _section(part, found)
    if found.after:
        console.line()
    for line in found.after:
        console.line(line)


def _section(part: Section, found: Comparison) -> None:
    if part.listed:
        console.line(f"{part.title}: {len(part.rows):,}")
        for name, *_ in part.rows[:MOST]:
            console.line(f"  {name}")
        _more(len(part.rows), MOST)
        return
    numbers = all(isinstance(cell, int | None) for _, *cells in part.rows for cell in cells)
    columns = (Column(part.title), Column(found.a, right=numbers), Column(found.b, right=numbers))
    most = MOST if part.kind == "tensor" else MOST_ROWS
    rows = [*part.rows[:most], *([part.total] if part.total else [])]
    console.print_table(Table(columns, tuple((name, _text(a), _text(b)) for name, a, b in rows)))
    _more(len(part.rows), most)


def _more(count: int, most: int) -> None:
    if count > most:
        console.line(f"  … and {count - most:,} more (--json lists all)")


def _cell(value: object) -> Cell:
    """A value as Markdown and CSV have it; `true` and `false` as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | str | None):
        return value
    if isinstance(value, Sequence) and all(isinstance(item, int) for item in value):
        return tuple(value)
    return ", ".join(map(_text, value)) if isinstance(value, Sequence) else str(value)


def _text(value: object) -> str:
    """A value for people."""
    if value is None:
        return "—"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.10g}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        text = f"[{', '.join(map(str, value))}]"
    else:
        text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
