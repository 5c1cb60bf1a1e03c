"""Every step of the forward pass in execution order: equation, shapes, dtypes, parameters, FLOPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from atlas.errors import UsageError, shown
from atlas.grammar import shapes
from atlas.grammar.formula import Formula
from atlas.grammar.formula import total as sum_of
from atlas.graph.graph import Graph, Step
from atlas.resolution.model import require_described
from atlas.units import MOST_COUNT

Size = int | str


@dataclass(frozen=True, slots=True)
class TracedStep:
    """One step.

    Attributes:
        id: where it stands: `layers.0.attention.scores`.
        symbol: the name of what it sets, `scores`.
        inputs: what it reads: activations by name, weights by id.
        axes: of the result, by name.
        shape: of the result; an axis whose size is free stays as its symbol.
        dtype: of the activation handed on, with the model in its stored dtype.
        computed_in: dtype of the arithmetic.
        flops: 2 for each multiply-add of a matrix product, 0 for all else; None where they depend on a free axis.
    """

    id: str
    layer: int | None
    component: str
    symbol: str
    equation: str
    inputs: tuple[str, ...]
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str
    computed_in: str
    parameters: int
    flops: int | None
    flops_formula: str


@dataclass(frozen=True, slots=True)
class Activation:
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Trace:
    model: str
    steps: tuple[TracedStep, ...]
    logits: Activation
    total_flops: int | None
    total_flops_formula: str
    symbols: Mapping[str, str]
    """Each free axis's symbol -> what it counts."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The sizes of one forward pass; None where an axis stays free.

    Attributes:
        batch: sequences.
        positions: tokens of each in this pass.
        past: positions already in the cache.
    """

    batch: int | None = None
    positions: int | None = None
    past: int | None = None

    def sizes(self) -> dict[str, int]:
        """Axis -> size, for the axes that have one.

        Raises:
            UsageError: a size below 1, or a negative past.
        """
        found: dict[str, int] = {}
        for axis, size in (("batch", self.batch), ("positions", self.positions)):
            if size is not None:
                if size < 1:
                    raise UsageError(f"--{axis} is {shown(size)}, expected 1 or more")
                found[axis] = size
        if self.past is not None and self.past < 0:
            raise UsageError(f"--past is {shown(self.past)}, expected 0 or more")
        for axis, size in (("batch", self.batch), ("positions", self.positions), ("past", self.past)):
            if size is not None and size > MOST_COUNT:
                raise UsageError(f"--{axis} is {shown(size)}, expected at most {MOST_COUNT:,}")
        if self.past is not None and self.positions is None:
            raise UsageError("--past goes with --positions: how many keys there are depends on both")
        if self.positions is not None:
            found["keys"] = self.positions + (self.past or 0)
        return found


def trace(graph: Graph, sizes: Pass | None = None) -> Trace:
    """Every step in execution order, layer by layer.

    Raises:
        NotDescribed: the model computes something that is not described.
    """
    require_described(graph.model, "trace")
    known = {**graph.dims, **(sizes or Pass()).sizes()}
    rows: dict[str, list[TracedStep]] = {}
    totals: list[Formula] = []
    for block in graph.blocks:
        rows[block.id] = [_row(graph, step, known) for node in block.nodes for step in node.steps]
        totals.append(
            flops_of(graph, [s for node in block.nodes for s in node.steps], known) * block.instances
        )
    steps: list[TracedStep] = []
    for layer, block in graph.blocks_in_order():
        if layer is None:
            steps += rows[block.id]
        else:
            steps += [
                replace(row, id=f"{block.stack}.{layer}.{row.id}", layer=layer) for row in rows[block.id]
            ]
    whole = sum_of(totals)
    last = steps[-1]
    free = {
        axis for row in steps for axis, size in zip(row.axes, row.shape, strict=True) if isinstance(size, str)
    }
    return Trace(
        model=graph.model.id,
        steps=tuple(steps),
        logits=Activation(last.axes, last.shape, last.dtype),
        total_flops=whole.value,
        total_flops_formula=str(whole),
        symbols={graph.axes[axis].symbol: graph.axes[axis].meaning for axis in graph.axes if axis in free},
    )


def shape_of(graph: Graph, shape: shapes.Shape, known: Mapping[str, int]) -> tuple[Size, ...]:
    """The shape in numbers, and in symbols where an axis is free."""
    return tuple(
        shapes.size(group, known)
        if all(axis in known for axis in group)
        else "*".join(graph.axes[axis].symbol for axis in group)
        for group in shape
    )


def step_flops(graph: Graph, step: Step, known: Mapping[str, int]) -> Formula:
    """2 for each multiply-add of a matrix product; the causal half is not discounted, nothing else is counted."""
    if step.op != "contract":
        return Formula({})
    symbols = {name: axis.symbol for name, axis in graph.axes.items()}
    return Formula.product(graph.multiplied(step), known, symbols, times=2)


def flops_of(graph: Graph, steps: list[Step], known: Mapping[str, int]) -> Formula:
    return sum_of(step_flops(graph, step, known) for step in steps)


def _row(graph: Graph, step: Step, known: Mapping[str, int]) -> TracedStep:
    flops = step_flops(graph, step, known)
    stored = graph.model.dtype
    return TracedStep(
        id=step.id,
        layer=None,
        component=step.component,
        symbol=step.sets.partition(".")[2],
        equation=step.words.text,
        inputs=tuple(operand.name for operand in step.of),
        axes=tuple(" ".join(group) for group in step.shape),
        shape=shape_of(graph, step.shape, known),
        dtype=stored if step.dtype == "A" else step.dtype,
        computed_in=stored if step.computed_in == "A" else step.computed_in,
        parameters=sum(graph.size(weight) for weight in step.weights if graph.tied_to(weight) is None),
        flops=flops.value,
        flops_formula=str(flops),
    )
