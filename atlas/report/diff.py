"""`atlas diff` for reading."""

from __future__ import annotations

from atlas.analyse.diff import Diff
from atlas.report import console

MOST = 10
"""Tensors listed of each kind before the rest are only counted."""


def show(result: Diff) -> None:
    """Only what differs; one line where nothing does."""
    if not result.differs:
        console.line(f"{result.a} and {result.b} are the same in every dimension, component and tensor")
        return
    if result.dims:
        rows = [[dim.name, _said(dim.a), _said(dim.b)] for dim in result.dims]
        console.out(console.table(["setting", result.a, result.b], rows, right=[1, 2]))
        console.line()
    if result.components:
        rows = [[c.id, _said(c.a), _said(c.b)] for c in result.components]
        rows.append(["total", f"{result.totals['a']:,}", f"{result.totals['b']:,}"])
        console.out(console.table(["parameters", result.a, result.b], rows, right=[1, 2]))
        console.line()
    if result.same_tensors:
        console.line("tensors    the same names and shapes")
    listed = [
        (f"only in {result.a}", [*result.tensors.only_a]),
        (f"only in {result.b}", [*result.tensors.only_b]),
        ("other shape", [f"{t.name} {list(t.a)} and {list(t.b)}" for t in result.tensors.shape]),
    ]
    for what, names in listed:
        if names:
            console.line(f"{what}: {len(names):,}")
            for name in names[:MOST]:
                console.line(f"  {name}")
            if len(names) > MOST:
                console.line(f"  … and {len(names) - MOST:,} more (--json lists all)")


def _said(value: object) -> str:
    if value is None:
        return "—"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
