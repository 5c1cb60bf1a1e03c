"""What no machine runs, refused before anything is allocated: a stranger's configuration can state any number."""

from __future__ import annotations

import math

from atlas.errors import ConfigError, RunError
from atlas.graph.graph import Graph, Stack

MOST_LAYERS = 10_000
"""Of one stack: a hundred times those of the deepest models. Every step of every layer is observed by name."""

MOST_NUMBERS = 2**62
"""In one weight: what torch counts in 64 bits, with room for offsets."""

_LEAST = {"rotate": math.ulp(0.0), "rms": 0.0, "scale": -math.inf}
"""Operation -> the least number it is meaningful by: a rotation's base is positive, an epsilon is not negative."""


def require_possible(graph: Graph, memory_bytes: int | None, itemsize: int) -> None:
    """Refuse a model whose numbers cannot be meant.

    Args:
        memory_bytes: what the machine has; None where the system does not say.
        itemsize: bytes of a number of a weight.

    Raises:
        ConfigError: too many layers, or a number that an operation cannot use.
        RunError: the largest weight alone does not fit into memory (`out_of_memory`).
    """
    for part in graph.parts:
        if isinstance(part, Stack) and part.count > MOST_LAYERS:
            raise ConfigError(
                f"{graph.model.id}: {part.count:,} {part.id}, expected at most {MOST_LAYERS:,} of a model that is run"
            )
    for block in graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                least = _LEAST.get(step.op)
                if least is None or not isinstance(step.by, int | float):
                    continue
                if not (_is_finite(step.by) and step.by >= least):
                    kind = {"rotate": "positive number", "rms": "number from 0 on"}.get(step.op, "number")
                    raise ConfigError(
                        f"{graph.model.id}: {step.id}: {step.op} by {step.by}, expected a finite {kind}"
                    )
    largest = max(graph.weights.values(), key=graph.size)
    numbers = graph.size(largest)
    if numbers > MOST_NUMBERS or (memory_bytes is not None and numbers * itemsize > memory_bytes):
        raise RunError(
            f"{largest.id} has {numbers:,} numbers, more than this machine's memory holds",
            hint="run it on a machine with more memory, or choose a narrower --dtype",
            code="out_of_memory",
        )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond every float
        return False
