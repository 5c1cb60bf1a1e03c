"""Every step of the forward pass in execution order: equation, shapes, dtypes, parameters, FLOPs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from atlas import dtypes
from atlas.analyse.parameters import counts
from atlas.analyse.producers import Producers
from atlas.errors import UsageError
from atlas.grammar import shapes
from atlas.grammar.formula import Formula
from atlas.grammar.formula import total as sum_of
from atlas.graph.graph import Graph, Step
from atlas.resolution.model import require_described
from atlas.tables import Tabular
from atlas.units import require_count

Size = int | str


@dataclass(frozen=True, slots=True)
class TracedStep:
    """One step.

    Attributes:
        id: layer, node and step: `layers.0.attention.scores`.
        layer: the layer's index; None outside the layers.
        component: the component that the step is counted under.
        symbol: the name of the activation that the step sets, `scores`.
        inputs: what the step reads: activations by name, weights by id.
        input_steps: ids of the steps whose results it reads, in the order of `inputs`; weights and token ids have none.
        axes: the result's axes, by name.
        shape: the result's shape; an axis of unknown size stays a symbol.
        dtype: the result's dtype when the model runs in its stored dtype.
        computed_in: the dtype of the arithmetic.
        flops: 2 per multiply-add of a matrix product, 0 for everything else; None if they depend on a free axis.
    """

    id: str
    layer: int | None
    component: str
    symbol: str
    equation: str
    inputs: tuple[str, ...]
    input_steps: tuple[str, ...]
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str
    computed_in: str
    parameters: int
    flops: int | None
    flops_formula: str

    @property
    def result_bytes(self) -> int | None:
        """The bytes of the result; None if they depend on a free axis."""
        sizes = [size for size in self.shape if isinstance(size, int)]
        whole = len(sizes) == len(self.shape) and self.dtype in dtypes.BITS
        return dtypes.size_bytes(self.dtype, math.prod(sizes)) if whole else None


@dataclass(frozen=True, slots=True)
class Activation:
    axes: tuple[str, ...]
    shape: tuple[Size, ...]
    dtype: str


@dataclass(frozen=True, slots=True, repr=False)
class Trace(Tabular):
    rows_fields: ClassVar[tuple[str, ...]] = ("steps",)

    model: str
    steps: tuple[TracedStep, ...]
    logits: Activation
    total_flops: int | None
    total_flops_formula: str
    symbols: Mapping[str, str]
    """Free axis's symbol -> its meaning."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The sizes of one forward pass; None leaves an axis free.

    Attributes:
        batch: the number of sequences.
        positions: the tokens per sequence in this pass.
        past: the positions already in the KV cache.
    """

    batch: int | None = None
    positions: int | None = None
    past: int | None = None

    def sizes(self) -> dict[str, int]:
        """Axis -> size, for every axis with a given size.

        Raises:
            UsageError: a size that is not an integer, or is out of range.
        """
        found: dict[str, int] = {}
        for axis, size in (("batch", self.batch), ("positions", self.positions)):
            if size is not None:
                require_count(size, f"--{axis}")
                found[axis] = size
        if self.past is not None:
            require_count(self.past, "--past", least=0)
        if self.past is not None and self.positions is None:
            raise UsageError("--past needs --positions: the number of keys depends on both")
        if self.positions is not None:
            found["keys"] = self.positions + (self.past or 0)
        return found


def trace(graph: Graph, sizes: Pass | None = None) -> Trace:
    """Every step in execution order, layer by layer.

    Raises:
        NotDescribed: the model has a setting that changes the computation and is not described.
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
    producers = Producers(graph)
    for layer, block in graph.blocks_in_order():
        producers.enter(block)
        prefix = "" if layer is None else f"{block.stack}.{layer}."
        placed = iter(rows[block.id])
        for node in block.nodes:
            for step in node.steps:
                row = next(placed)
                id = f"{prefix}{row.id}"
                steps.append(replace(row, id=id, layer=layer, input_steps=producers.of(step)))
                producers.set(step, id)
            producers.hand_on(node)
        producers.leave(block)
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
    """The shape as numbers, with symbols for free axes."""
    return tuple(
        shapes.size(group, known)
        if all(axis in known for axis in group)
        else "*".join(graph.axes[axis].symbol for axis in group)
        for group in shape
    )


PRODUCTS: Mapping[str, int] = {"contract": 1, "convolve": 1, "delta_rule": 3}
"""Operation -> the multiply-adds for each combination of its axes. `delta_rule` reads its state with the key, adds the
outer product of key and correction, and reads it with the query, once for each position."""


def step_flops(graph: Graph, step: Step, known: Mapping[str, int]) -> Formula:
    """2 per multiply-add of a matrix product, the causal half included; other operations count as 0.

    Of routed experts the chosen ones count, whose axis the operand has. A convolution counts each position with every entry
    of its kernel, a recurrence three products with its state for each position.
    """
    if step.op not in PRODUCTS:
        return Formula({})
    symbols = {name: axis.symbol for name, axis in graph.axes.items()}
    axes = graph.multiplied(step)
    if step.op == "delta_rule" and step.state is not None:
        axes = [
            *(axis for axis in shapes.atoms(step.shape) if axis == "positions"),
            *shapes.atoms(step.state),
        ]
    return Formula.product(axes, known, symbols, times=2 * PRODUCTS[step.op])


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
        input_steps=(),
        axes=tuple(" ".join(group) for group in step.shape),
        shape=shape_of(graph, step.shape, known),
        dtype=stored if step.dtype == "A" else step.dtype,
        computed_in=stored if step.computed_in == "A" else step.computed_in,
        parameters=sum(graph.size(weight) for weight in step.weights if counts(graph, weight)),
        flops=flops.value,
        flops_formula=str(flops),
    )
