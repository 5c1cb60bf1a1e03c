"""Prints the result of `atlas diff`."""

from __future__ import annotations

from atlas.analyse.diff import Diff
from atlas.report import console

MOST = 10
"""Tensors listed per kind; further ones are only counted."""


def show(result: Diff) -> None:
    """Print what differs, or one line if nothing does."""
    if not result.differs:
        console.line(f"{result.a} and {result.b}: same architecture and tensor shapes; weights not compared")
        return
    if result.dims:
        rows = [[dim.name, _text(dim.a), _text(dim.b)] for dim in result.dims]
        console.out(console.table(["setting", result.a, result.b], rows, right=[1, 2]))
        console.line()
    if result.components:
        rows = [[c.id, _text(c.a), _text(c.b)] for c in result.components]
        rows.append(["total", f"{result.totals['a']:,}", f"{result.totals['b']:,}"])
        console.out(console.table(["parameters", result.a, result.b], rows, right=[1, 2]))
        console.line()
    if result.same_tensors:
        console.line("tensors    the same names and shapes")
    tensors = [
        (f"only in {result.a}", [*result.tensors.only_a]),
        (f"only in {result.b}", [*result.tensors.only_b]),
        ("other shape", [f"{t.name} {list(t.a)} and {list(t.b)}" for t in result.tensors.shape]),
    ]
    for what, names in tensors:
        if names:
            console.line(f"{what}: {len(names):,}")
            for name in names[:MOST]:
                console.line(f"  {name}")
            if len(names) > MOST:
                console.line(f"  … and {len(names) - MOST:,} more (--json lists all)")


def _text(value: object) -> str:
    if value is None:
        return "—"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
