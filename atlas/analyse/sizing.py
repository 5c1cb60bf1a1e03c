"""The bytes of one forward pass: weights, cached keys and values, logits, and the largest activation, on each device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from atlas import dtypes
from atlas.analyse import devices as parallel
from atlas.analyse import parameters
from atlas.grammar import shapes
from atlas.graph import tensors
from atlas.graph.graph import Graph, Step


@dataclass(frozen=True, slots=True)
class PassBytes:
    """What one pass produces.

    Attributes:
        step: the step whose result is the largest activation.
        sizes: axis -> size, with those of the pass.
    """

    logits: int
    largest: int
    step: Step
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Sizing:
    """Sizes in bytes for a choice of dtypes.

    Attributes:
        weights_dtype: None where the weights are stored in a way that is not described.
        unwritten: ids of the steps whose results a fused kernel keeps out of memory.
        positions: tokens of each sequence in one pass.
    """

    graph: Graph
    weights_dtype: str | None
    activations: str
    kv_dtype: str
    unwritten: frozenset[str]
    positions: int

    @property
    def elements(self) -> int:
        """The elements of the weights, as the published checkpoint stores them."""
        return parameters.stored(self.graph, tensors.published(self.graph))[1]

    def weights(self, devices: int = 1) -> int | None:
        """Bytes of the weights on each device; None where they are not known.

        Raises:
            UsageError: a matrix does not divide evenly over the devices.
        """
        elements = self.elements if devices == 1 else parallel.per_device(self.graph, devices)
        return None if self.weights_dtype is None else dtypes.size_bytes(self.weights_dtype, elements)

    def kv_per_token(self, devices: int = 1) -> int:
        """Bytes of one cached position of one sequence on each device, in all layers."""
        elements = 0
        for _, steps, many in self._caches():
            for step in steps:
                size = shapes.size(_cached(step), self.graph.dims)
                elements += parallel.cached_on_each(self.graph, size, step.shape, devices) * many
        return dtypes.size_bytes(self.kv_dtype, elements)

    def kv_calculation(self) -> str:
        terms = []
        for layers, steps, _ in self._caches():
            each = [shapes.size(_cached(step), self.graph.dims) for step in steps]
            if len(set(each)) == 1:
                inner = " × ".join(f"{self.graph.dims[axis]:,}" for axis in _cached(steps[0]))
                terms.append(f"{layers} × {len(steps)} × {inner}")
            else:
                terms.append(f"{layers} × ({' + '.join(f'{size:,}' for size in each)})")
        return f"{' + '.join(terms) or '0'} × {width(self.kv_dtype)}"

    def one_pass(self, context: int, batch: int) -> PassBytes:
        """The logits and the largest activation of a pass that ends at this context."""
        sizes = {
            **self.graph.dims,
            "batch": batch,
            "positions": min(self.positions, context),
            "keys": context,
        }
        steps = [step for block in self.graph.blocks for node in block.nodes for step in node.steps]
        last = steps[-1]
        written = [
            step
            for step in steps[:-1]
            if step.op != "cache"
            and step.id not in self.unwritten
            and all(axis in sizes for axis in shapes.atoms(step.shape))
        ]
        largest = max(written, key=lambda step: self._bytes(step, sizes))
        return PassBytes(self._bytes(last, sizes), self._bytes(largest, sizes), largest, sizes)

    def dtype(self, step: Step) -> str:
        """The dtype of a step's result."""
        return self.activations if step.dtype == "A" else step.dtype

    def product(self, step: Step, sizes: Mapping[str, int]) -> str:
        """The bytes of a step's result, written out."""
        axes = " × ".join(f"{sizes[axis]:,} {axis}" for axis in shapes.atoms(step.shape))
        return f"{axes} × {width(self.dtype(step))}"

    def _bytes(self, step: Step, sizes: Mapping[str, int]) -> int:
        return dtypes.size_bytes(self.dtype(step), shapes.size(shapes.atoms(step.shape), sizes))

    def _caches(self) -> list[tuple[str, list[Step], int]]:
        """For each block that caches: its layers in words, its cache steps, and its number of layers."""
        found = []
        for block in self.graph.blocks:
            steps = [step for node in block.nodes for step in node.steps if step.op == "cache"]
            if steps and block.instances:
                found.append((f"{block.instances:,} layers", steps, block.instances))
        return found


def width(dtype: str) -> str:
    """`2 bytes`, `4 bits`."""
    bits = dtypes.BITS[dtype]
    return f"{bits // 8} byte{'s' * (bits > 8)}" if bits % 8 == 0 else f"{bits} bits"


def _cached(step: Step) -> list[str]:
    """The axes of one cached position."""
    return [axis for axis in shapes.atoms(step.shape) if axis not in ("batch", "keys")]
