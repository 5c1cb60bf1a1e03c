"""Every step of a pass compared with the trace of the same pass: shape, dtype, and whether its values are finite."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from atlas.analyse.trace import Pass, trace
from atlas.execution.devices import CODES
from atlas.execution.result import Mismatch, ObservedStep, Steps, TensorType
from atlas.graph.graph import Graph

_KEEPS_INFINITY = {"scale", "add", "cast", "rename"}
"""Operations that hand a masked score's minus infinity on; softmax turns it into 0."""


class Observer:
    """Compares each step's result with its declared shape and dtype, and checks that its values are finite.

    Args:
        graph: its model's dtype is the one that the pass runs in.
        sizes: of the pass; none is free.
        summarise: whether to record the mean and the root mean square of each step's values.
    """

    def __init__(self, graph: Graph, sizes: Pass, *, summarise: bool = False) -> None:
        rows = trace(graph, sizes).steps
        self._declared = {row.id: TensorType(tuple(map(int, row.shape)), row.dtype) for row in rows}
        self._outputs = set({(row.layer, row.component): row.id for row in rows}.values())
        self._masked = _masked_steps(graph)
        self._summarise = summarise
        self._observed: dict[str, TensorType] = {}
        # Extremes stay on the device until they are asked for, so that no step waits for the one before.
        self._extremes: dict[str, tuple[Tensor, Tensor]] = {}
        self._means: dict[str, tuple[float, float]] = {}

    def __call__(self, step: str, result: Tensor) -> None:
        """Record one step's result under its address."""
        self._observed[step] = TensorType(tuple(result.shape), _code(result.dtype))
        if result.numel() and not result.is_meta:  # meta tensors have a shape and no values
            low, high = result.aminmax()  # both are NaN if any value is
            self._extremes[step] = low, high
        if self._summarise and result.is_floating_point() and not result.is_meta:
            values = result[result.isfinite()].double()
            if values.numel():
                self._means[step] = float(values.mean()), float(values.square().mean().sqrt())

    @property
    def steps(self) -> Steps:
        """What was observed so far."""
        mismatches = tuple(
            Mismatch(step, self._declared[step], found)
            for step, found in self._observed.items()
            if found != self._declared[step]
        )
        return Steps(
            declared=len(self._declared),
            observed=len(self._observed),
            mismatches=mismatches,
            not_finite=tuple(step for step in self._observed if not self._is_finite(step)),
            not_observed=tuple(step for step in self._declared if step not in self._observed),
        )

    @property
    def confirmed(self) -> bool:
        """Every component's output was observed, and every observed step is as declared and has finite values only."""
        steps = self.steps
        return self._outputs <= self._observed.keys() and not steps.mismatches and not steps.not_finite

    def observed_steps(self) -> tuple[ObservedStep, ...]:
        """Each observed step with a summary of its values, in execution order."""
        found = []
        for step, kind in self._observed.items():
            low, high = map(float, self._extremes.get(step, (math.nan, math.nan)))
            mean, rms = self._means.get(step, (None, None))
            found.append(
                ObservedStep(
                    id=step,
                    shape=kind.shape,
                    dtype=kind.dtype,
                    finite=self._is_finite(step),
                    min=_finite_or_none(low),
                    max=_finite_or_none(high),
                    mean=mean,
                    rms=rms,
                )
            )
        return tuple(found)

    def _is_finite(self, step: str) -> bool:
        if step not in self._extremes:
            return True
        low, high = map(float, self._extremes[step])
        return high < math.inf and (low > -math.inf or step in self._masked)  # no comparison holds of NaN


def _masked_steps(graph: Graph) -> set[str]:
    """The addresses of the steps whose result may have the minus infinity of scores that are masked or out of the choice."""
    found: set[str] = set()
    for block in graph.blocks:
        symbols: set[str] = set()
        for step in (step for node in block.nodes for step in node.steps):
            reads = {operand.name for operand in step.of}
            if step.op in ("mask", "best_groups") or (step.op in _KEEPS_INFINITY and reads & symbols):
                symbols.add(step.sets)
                layers = (
                    [""] if block.layers is None else [f"{block.stack}.{layer}." for layer in block.layers]
                )
                found.update(f"{layer}{step.id}" for layer in layers)
    return found


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _code(dtype: torch.dtype) -> str:
    return CODES.get(dtype, str(dtype).removeprefix("torch."))
