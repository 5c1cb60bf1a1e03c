"""FLOPs of one forward pass by component, the bytes each moves, and which of the two bounds it on a given machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from atlas import dtypes
from atlas.analyse.caches import window_of
from atlas.analyse.fused import Attention, Fused, fused, masked_flops
from atlas.analyse.trace import Pass, step_flops
from atlas.analyse.undescribed import sentence, weights_gaps, window_notes
from atlas.grammar import shapes
from atlas.graph.graph import Block, Graph, Operand, Step
from atlas.resolution.model import require_described
from atlas.tables import Tabular

CONVENTION = (
    "2 FLOPs for each multiply-add of a matrix product; the causal half of attention is not discounted; look-ups and "
    "elementwise work are not counted. Each product reads its operands from memory once and writes its result once."
)
RECURRENT = (
    " A convolution counts as a product with its kernel at each position, and a recurrence as three products with its state for "
    "each position: read with the key, corrected, read with the query. Both read and write their state once."
)
FUSED = " Attention is one fused kernel: the scores are never in memory."
EAGER = " Attention is computed step by step: the scores are written to memory and read back."


@dataclass(frozen=True, slots=True)
class ComponentFlops:
    """The matrix products of one component, in all layers.

    Attributes:
        bytes: weights, operands and results of its products, each moved once; None if its weights' size is not known.
        intensity: FLOPs per byte.
        bound: `compute` or `memory` on the given machine; None without one.
    """

    id: str
    flops: int
    bytes: int | None
    intensity: float | None
    bound: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Flops(Tabular):
    """The result of `atlas flops`.

    Attributes:
        masked_flops: the part of `total_flops` that masks discard, which a kernel may skip: about half of attention, and with
            windows the keys before them.
        seconds: the same as `seconds_at_least`.
        seconds_at_least: on the given machine at 100 % of its peaks, with all of `total_flops` computed: each component
            takes the longer of its compute and memory time. None without a machine.
        seconds_at_least_masked_skipped: the same with `masked_flops` skipped.
    """

    rows_fields: ClassVar[tuple[str, ...]] = ("components",)

    model: str
    batch: int
    positions: int
    past: int
    attention: str
    total_flops: int
    masked_flops: int
    total_bytes: int | None
    seconds: float | None
    seconds_at_least: float | None
    seconds_at_least_masked_skipped: float | None
    components: tuple[ComponentFlops, ...]
    convention: str
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Work:
    """What has been added up for one component so far."""

    flops: int = 0
    masked: int = 0
    bytes: int = 0
    sized: bool = True


def flops(
    graph: Graph,
    *,
    batch: int = 1,
    positions: int = 1,
    past: int = 0,
    attention: str = Attention.fused,
    flops_per_second: float | None = None,
    bytes_per_second: float | None = None,
) -> Flops:
    """FLOPs of one pass.

    Args:
        attention: `fused`: the scores are never in memory; `eager`: every step's result is.

    Raises:
        NotDescribed: the pass depends on a setting that is not described, such as a shorter sliding window.
        UsageError: a size below 1, or a negative past.
    """
    sizes = {**graph.dims, **Pass(batch, positions, past).sizes()}
    require_described(graph.model, "flops", sizes["keys"])
    unsized = weights_gaps(graph.model)
    kernels = fused(graph)
    # Step by step, every score is written and multiplied, the masked ones too.
    written = Fused() if attention == Attention.eager else kernels
    work: dict[str, _Work] = {}
    for block in graph.blocks:
        windows = _cached_windows(block)
        for node in block.nodes:
            unwritten = {step.sets for step in node.steps if step.id in written.unwritten}
            for step in node.steps:
                amount = step_flops(graph, step, sizes).value
                if not amount:
                    continue
                row = work.setdefault(step.component, _Work())
                row.flops += amount * block.instances
                if step.id in written.causal:
                    row.masked += (
                        masked_flops(step, amount, sizes, written.windows.get((block.id, step.id)))
                        * block.instances
                    )
                row.bytes += _moved(graph, step, sizes, unwritten, windows) * block.instances
                row.sized = row.sized and not (unsized and step.weights)
    rates = None
    if flops_per_second is not None and bytes_per_second is not None:
        rates = (flops_per_second, bytes_per_second)
    timed = rates is not None and all(row.sized for row in work.values())
    declared, skipped = (
        (_seconds(work, rates, skip=False), _seconds(work, rates, skip=True))
        if rates is not None and timed
        else (None, None)
    )
    return Flops(
        model=graph.model.id,
        batch=batch,
        positions=positions,
        past=past,
        attention=attention,
        total_flops=sum(row.flops for row in work.values()),
        masked_flops=sum(row.masked for row in work.values()),
        total_bytes=sum(row.bytes for row in work.values())
        if all(row.sized for row in work.values())
        else None,
        seconds=declared,
        seconds_at_least=declared,
        seconds_at_least_masked_skipped=skipped,
        components=tuple(_row(name, row, rates) for name, row in work.items()),
        convention=_convention(graph, attention),
        notes=(
            *(
                f"{sentence(gap)}. The bytes of products with weights, and so the time on a machine, are not known."
                for gap in unsized
            ),
            *window_notes(graph.model, "flops", sizes["keys"]),
            *_key_notes(graph, sizes["keys"]),
        ),
    )


def _convention(graph: Graph, attention: str) -> str:
    recurrent = any(step.op in ("convolve", "delta_rule") for step in _steps(graph))
    return CONVENTION + RECURRENT * recurrent + (EAGER if attention == Attention.eager else FUSED)


def _key_notes(graph: Graph, keys: int) -> list[str]:
    """Which keys are counted in layers with a window, where the pass goes beyond it."""
    windows = sorted({window for step in _steps(graph) if step.op == "mask" and (window := window_of(step))})
    beyond = [f"{window:,}" for window in windows if keys > window]
    if not beyond:
        return []
    return [
        f"In layers with a window of {' or '.join(beyond)} positions the products count all {keys:,} keys, as in the others; "
        "keys before the window are among the masked ones, and are not read from the cache."
    ]


def _cached_windows(block: Block) -> dict[str, int]:
    """Symbol of a windowed cache that the block has or reads -> its window."""
    found: dict[str, int] = {}
    for node in block.nodes:
        for step in node.steps:
            if step.op == "cache" and (window := window_of(step)):
                found[step.sets] = window
            elif step.op == "mask" and (window := window_of(step)):
                found |= {operand.name: window for operand in node.of if ("keys",) in operand.shape}
    return found


def _steps(graph: Graph) -> Iterator[Step]:
    return (step for block in graph.blocks for node in block.nodes for step in node.steps)


def _row(name: str, row: _Work, rates: tuple[float, float] | None) -> ComponentFlops:
    if not row.sized:
        return ComponentFlops(name, row.flops, None, None, None)
    bound = None
    if rates is not None:
        bound = "compute" if row.flops / rates[0] >= row.bytes / rates[1] else "memory"
    return ComponentFlops(name, row.flops, row.bytes, row.flops / row.bytes, bound)


def _seconds(work: Mapping[str, _Work], rates: tuple[float, float], *, skip: bool) -> float:
    return sum(max((row.flops - row.masked * skip) / rates[0], row.bytes / rates[1]) for row in work.values())


def _moved(
    graph: Graph, step: Step, sizes: Mapping[str, int], unwritten: set[str], windows: Mapping[str, int]
) -> int:
    """Bytes that a product reads and writes; values that stay inside a fused kernel are neither.

    Of a cache with a window, the positions that this pass's first position sees and those after it are read.
    """
    stored = graph.model.dtype
    activations = dtypes.of_activations(stored)

    def size(shape: shapes.Shape, dtype: str) -> int:
        return dtypes.size_bytes(dtype, shapes.size(shapes.atoms(shape), sizes))

    def read(operand: Operand) -> int:
        if operand.name in unwritten:
            return 0
        if operand.weight is not None and operand.chosen is not None:
            # At most one matrix for each visit, and never more than all of them.
            return min(size(operand.shape, stored), size(operand.weight.shape, stored))
        if operand.name in windows:
            kept = min(sizes["keys"], windows[operand.name] + sizes["positions"] - 1)
            return dtypes.size_bytes(
                activations, shapes.size(shapes.atoms(operand.shape), {**sizes, "keys": kept})
            )
        return size(operand.shape, stored if operand.weight is not None else activations)

    moved = sum(map(read, step.of))
    if step.state is not None:
        moved += 2 * size(step.state, activations if step.computed_in == "A" else step.computed_in)
    if step.sets in unwritten:
        return moved
    return moved + size(step.shape, activations if step.dtype == "A" else step.dtype)
