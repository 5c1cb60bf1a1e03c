"""What a pass really made, step by step, against what the trace of the same pass declares."""

from __future__ import annotations

import torch
from torch import Tensor

from atlas.analyse.trace import Pass, trace
from atlas.execution.devices import CODES
from atlas.execution.result import Mismatch, Steps, TensorType
from atlas.graph.graph import Graph


class Observer:
    """Compares each step's result with its declared shape and dtype.

    Args:
        graph: its model's dtype is the one the pass runs in.
        sizes: of the pass; none free.
    """

    def __init__(self, graph: Graph, sizes: Pass) -> None:
        rows = trace(graph, sizes).steps
        self._declared = {row.id: TensorType(tuple(map(int, row.shape)), row.dtype) for row in rows}
        self._outputs = set({(row.layer, row.component): row.id for row in rows}.values())
        self._observed: set[str] = set()
        self._mismatches: list[Mismatch] = []

    def __call__(self, step: str, made: Tensor) -> None:
        """One step's address and result."""
        seen = TensorType(tuple(made.shape), _code(made.dtype))
        self._observed.add(step)
        if seen != self._declared[step]:
            self._mismatches.append(Mismatch(step, self._declared[step], seen))

    @property
    def steps(self) -> Steps:
        return Steps(len(self._declared), len(self._observed), tuple(self._mismatches))

    @property
    def confirmed(self) -> bool:
        """Every component's output was observed, and nothing observed was otherwise than declared."""
        return self._outputs <= self._observed and not self._mismatches


def _code(dtype: torch.dtype) -> str:
    return CODES.get(dtype, str(dtype).removeprefix("torch."))
