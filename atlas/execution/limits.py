"""Models that no machine can run are refused before anything is allocated: a configuration may state any number."""

from __future__ import annotations

import math

from atlas.errors import ConfigError, RunError
from atlas.graph.graph import Graph, Stack

MOST_LAYERS = 10_000
"""Of one stack: a hundred times as many as the deepest models have. Every step of every layer is observed by name."""

MOST_ELEMENTS = 2**62
"""Of one weight: what torch can index with 64 bits, with room for offsets."""

_LEAST = {"rotate": math.ulp(0.0), "rms": 0.0, "scale": -math.inf}
"""Operation -> the smallest valid `by`: theta is positive, an epsilon is not negative."""


def require_possible(graph: Graph, memory_bytes: int | None, itemsize: int) -> None:
    """Refuse a model whose sizes or numbers are impossible.

    Args:
        memory_bytes: the memory of the machine; None where the system does not report it.
        itemsize: bytes of one element of a weight.

    Raises:
        ConfigError: too many layers, or a number outside what an operation accepts.
        RunError: the largest weight alone does not fit into memory (`out_of_memory`).
    """
    for part in graph.parts:
        if isinstance(part, Stack) and part.count > MOST_LAYERS:
            raise ConfigError(f"{graph.model.id}: {part.count:,} {part.id}, expected at most {MOST_LAYERS:,}")
    for block in graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                least = _LEAST.get(step.op)
                if least is None or not isinstance(step.by, int | float):
                    continue
                if not (_is_finite(step.by) and step.by >= least):
                    kind = {"rotate": "positive number", "rms": "number of 0 or more"}.get(step.op, "number")
                    raise ConfigError(
                        f"{graph.model.id}: {step.id}: {step.op} by {step.by}, expected a finite {kind}"
                    )
    largest = max(graph.weights.values(), key=graph.size)
    elements = graph.size(largest)
    if elements > MOST_ELEMENTS or (memory_bytes is not None and elements * itemsize > memory_bytes):
        raise RunError(
            f"{largest.id} has {elements:,} elements, more than fit into this machine's memory",
            hint="run it on a machine with more memory, or choose a narrower --dtype",
            code="out_of_memory",
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer larger than any float
        return False
