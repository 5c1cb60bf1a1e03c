"""The table of `atlas trace`: for the terminal, in Markdown and in CSV."""

from __future__ import annotations

from collections.abc import Mapping

from atlas.analyse.folding import FoldedStep, folded, name, node, unfolded
from atlas.analyse.trace import Trace, TracedStep
from atlas.report import console
from atlas.tables import Column, Table

FIELDS = (
    "step",
    "layer",
    "component",
    "equation",
    "inputs",
    "shape",
    "dtype",
    "computed_in",
    "bytes",
    "parameters",
    "flops",
)
"""The columns in CSV."""


def show(trace: Trace, names: Mapping[str, str], *, every: bool) -> None:
    """Print one row per step, then the logits and the total.

    Args:
        names: component or node -> its name in the convention that is shown.
        every: list each layer; otherwise layers alike are one.
    """
    rows = unfolded(trace) if every else folded(trace)
    console.line(f"{trace.model}: {len(trace.steps):,} steps")
    if len(rows) < len(trace.steps):
        console.line(
            "Layers alike are one row; × is their number, and figures are those of one layer (--all lists each)."
        )
    console.line()
    console.print_table(table(rows, names))
    console.line()
    shape = ", ".join(map(str, trace.logits.shape))
    console.line(f"logits     [{shape}] {trace.logits.dtype}")
    total = trace.total_flops_formula if trace.total_flops is None else f"{trace.total_flops:,}"
    console.line(f"FLOPs      {total} in the whole pass")
    for symbol, meaning in trace.symbols.items():
        console.line(f"{symbol:<10} {meaning}")


def markdown(trace: Trace, names: Mapping[str, str], *, every: bool) -> None:
    """Print the same rows as Markdown."""
    console.print_table(table(unfolded(trace) if every else folded(trace), names), markdown=True)


def comma_separated(trace: Trace, names: Mapping[str, str]) -> None:
    """Print every step of every layer as CSV, one value per cell."""
    rows = (
        (
            _named(row, names),
            row.step.layer,
            names.get(row.step.component, row.step.component),
            row.step.equation,
            " ".join(row.step.inputs),
            row.step.shape,
            row.step.dtype,
            row.step.computed_in,
            row.step.result_bytes,
            row.step.parameters,
            row.step.flops_formula if row.step.flops is None else row.step.flops,
        )
        for row in unfolded(trace)
    )
    console.print_table(Table(tuple(Column(None, field) for field in FIELDS), tuple(rows)), csv=True)


def table(rows: list[FoldedStep], names: Mapping[str, str]) -> Table:
    """One row per step; the column × is there if layers are folded."""
    headings = ("step", "×", "equation", "shape", "dtype", "parameters", "FLOPs")
    right = {"×", "parameters", "FLOPs"}
    columns = tuple(Column(heading, right=heading in right) for heading in headings)
    made = [_row(row, names) for row in rows]
    if all(row.count == 1 for row in rows):
        return Table((columns[0], *columns[2:]), tuple((row[0], *row[2:]) for row in made))
    return Table(columns, tuple(made))


def _row(row: FoldedStep, names: Mapping[str, str]) -> tuple[str | int | None, ...]:
    step = row.step
    return (
        _named(row, names),
        row.count,
        step.equation,
        f"[{', '.join(map(str, step.shape))}]",
        step.dtype if step.dtype == step.computed_in else f"{step.dtype} (in {step.computed_in})",
        step.parameters or None,
        _flops(step),
    )


def _named(row: FoldedStep, names: Mapping[str, str]) -> str:
    """A step's id, its node under its name in the convention: `layers.0.self_attn.q`."""
    own = node(row.step)
    renamed = names.get(own, own) + name(row.step).removeprefix(own)
    return f"{row.prefix}.{renamed}" if row.prefix else renamed


def _flops(step: TracedStep) -> str | int | None:
    if step.flops == 0:
        return None
    return step.flops_formula if step.flops is None else step.flops
