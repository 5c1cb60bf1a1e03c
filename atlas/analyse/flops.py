"""FLOPs of a pass for each component, the bytes it moves, and which of the two bounds it on a given machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from atlas import dtypes
from atlas.analyse.trace import Pass, step_flops
from atlas.grammar import shapes
from atlas.graph.graph import Graph, Operand, Step
from atlas.resolution.model import require_described
from atlas.tables import Tabular

CONVENTION = (
    "2 FLOPs for each multiply-add of a matrix product; the causal half is not discounted; look-ups and elementwise work "
    "are not counted. Bytes are those of each product's operands and result, each moved once."
)


@dataclass(frozen=True, slots=True)
class ComponentFlops:
    """One component's matrix products, in all layers.

    Attributes:
        bytes: weights, operands and results of its products, each moved once.
        intensity: FLOPs for each byte.
        bound: `compute` or `memory` on the machine asked about; None where none was.
    """

    id: str
    flops: int
    bytes: int
    intensity: float
    bound: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Flops(Tabular):
    rows_fields: ClassVar[tuple[str, ...]] = ("components",)

    model: str
    batch: int
    positions: int
    past: int
    total_flops: int
    total_bytes: int
    seconds: float | None
    """At least so long on the machine asked about: each component at the slower of its two limits."""
    components: tuple[ComponentFlops, ...]
    convention: str


def flops(
    graph: Graph,
    *,
    batch: int = 1,
    positions: int = 1,
    past: int = 0,
    flops_per_second: float | None = None,
    bytes_per_second: float | None = None,
) -> Flops:
    """FLOPs of one pass.

    Raises:
        NotDescribed: the model's weights are stored in a way that is not described.
        UsageError: a size below 1, or a negative past.
    """
    require_described(graph.model, "flops")
    sizes = {**graph.dims, **Pass(batch, positions, past).sizes()}
    work: dict[str, int] = {}
    moved: dict[str, int] = {}
    for block in graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                amount = step_flops(graph, step, sizes).value
                if amount:
                    work[step.component] = work.get(step.component, 0) + amount * block.instances
                    moved[step.component] = (
                        moved.get(step.component, 0) + _moved(graph, step, sizes) * block.instances
                    )
    both = flops_per_second is not None and bytes_per_second is not None
    rows = []
    seconds = 0.0
    for name, amount in work.items():
        bound = None
        if both and flops_per_second and bytes_per_second:
            by_compute, by_memory = amount / flops_per_second, moved[name] / bytes_per_second
            bound = "compute" if by_compute >= by_memory else "memory"
            seconds += max(by_compute, by_memory)
        rows.append(ComponentFlops(name, amount, moved[name], amount / moved[name], bound))
    return Flops(
        model=graph.model.id,
        batch=batch,
        positions=positions,
        past=past,
        total_flops=sum(work.values()),
        total_bytes=sum(moved.values()),
        seconds=seconds if both else None,
        components=tuple(rows),
        convention=CONVENTION,
    )


def _moved(graph: Graph, step: Step, sizes: Mapping[str, int]) -> int:
    stored = graph.model.dtype

    def size(shape: shapes.Shape, dtype: str) -> int:
        return dtypes.size_bytes(stored if dtype == "A" else dtype, shapes.size(shapes.atoms(shape), sizes))

    def read(operand: Operand) -> int:
        if operand.weight is not None and operand.chosen is not None:
            # At most one matrix for each visit, and never more than all of them.
            return min(size(operand.shape, "A"), size(operand.weight.shape, "A"))
        return size(operand.shape, "A")

    return sum(map(read, step.of)) + size(step.shape, step.dtype)
