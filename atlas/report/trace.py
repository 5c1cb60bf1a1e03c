"""Prints the result of `atlas trace`."""

from __future__ import annotations

from atlas.analyse.trace import Trace, TracedStep
from atlas.report import console


def show(trace: Trace) -> None:
    """Print one row per step; FLOPs are symbolic if batch or positions are free."""
    console.line(f"{trace.model}: {len(trace.steps):,} steps")
    console.line()
    rows = [
        [
            step.id,
            step.equation,
            f"[{', '.join(map(str, step.shape))}]",
            step.dtype if step.dtype == step.computed_in else f"{step.dtype} (in {step.computed_in})",
            f"{step.parameters:,}" if step.parameters else "",
            _flops(step),
        ]
        for step in trace.steps
    ]
    console.out(
        console.table(["step", "equation", "shape", "dtype", "parameters", "FLOPs"], rows, right=[4, 5])
    )
    shape = ", ".join(map(str, trace.logits.shape))
    console.line()
    console.line(f"logits     [{shape}] {trace.logits.dtype}")
    total = trace.total_flops_formula if trace.total_flops is None else f"{trace.total_flops:,}"
    console.line(f"FLOPs      {total}")
    for symbol, meaning in trace.symbols.items():
        console.line(f"{symbol:<10} {meaning}")


def _flops(step: TracedStep) -> str:
    if step.flops == 0:
        return ""
    return step.flops_formula if step.flops is None else f"{step.flops:,}"
