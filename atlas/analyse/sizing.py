"""The bytes of one forward pass: weights, what is cached, states, logits, and the largest activation, on each device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from atlas import dtypes
from atlas.analyse import devices as parallel
from atlas.analyse import parameters
from atlas.analyse.caches import (
    LayerCache,
    elements,
    layer_caches,
    position_axes,
    state_axes,
    state_elements,
)
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


@dataclass(frozen=True)
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
        elements = self.elements if devices == 1 else parallel.per_device(self.graph, devices, buffers=True)
        return None if self.weights_dtype is None else dtypes.size_bytes(self.weights_dtype, elements)

    @cached_property
    def caches(self) -> list[LayerCache]:
        """What each kind of layer keeps between passes."""
        return layer_caches(self.graph)

    @property
    def windows(self) -> list[int]:
        """The windows of the layers that have one, in ascending order."""
        return sorted({cache.window for cache in self.caches if cache.window is not None})

    def kv_per_token(self, devices: int = 1) -> int:
        """Bytes of one cached position of one sequence inside every window on each device, in all layers."""
        return self._cached(self.caches, 1, devices)

    def kv_per_token_beyond(self) -> int:
        """Bytes of one further position beyond every window: those of the layers without one."""
        return self._cached([cache for cache in self.caches if cache.window is None], 1)

    def kv(self, context: int, devices: int = 1) -> int:
        """Bytes of one sequence's cached positions on each device."""
        return self._cached(self.caches, context, devices)

    def kv_of(self, cache: LayerCache, context: int) -> int:
        """Bytes of one sequence's cached positions in the layers of one kind."""
        return self._cached([cache], context)

    def state(self, devices: int = 1) -> int:
        """Bytes of one sequence's states on each device, in all layers."""
        return sum(self.state_of(cache, devices) for cache in self.caches)

    def state_of(self, cache: LayerCache, devices: int = 1) -> int:
        """Bytes of one sequence's states in the layers of one kind, each in the dtype that its step computes in."""
        return sum(
            dtypes.size_bytes(self.state_dtype(step), state_elements(self.graph, cache, step, devices))
            for step in cache.states
        )

    def state_dtype(self, step: Step) -> str:
        return self.activations if step.computed_in == "A" else step.computed_in

    def kv_calculation(self, caches: Sequence[LayerCache] | None = None) -> str:
        """The bytes of one position, written out."""
        terms = []
        for cache in self.caches if caches is None else caches:
            each = [shapes.size(position_axes(step), self.graph.dims) for step in cache.steps]
            if not each:
                continue
            layers = f"{cache.layers:,} layers"
            if len(set(each)) == 1:
                inner = " × ".join(f"{self.graph.dims[axis]:,}" for axis in position_axes(cache.steps[0]))
                terms.append(f"{layers} × {len(each)} × {inner}")
            else:
                terms.append(f"{layers} × ({' + '.join(f'{size:,}' for size in each)})")
        total = " + ".join(terms) or "0"
        return f"{f'({total})' if len(terms) > 1 else total} × {width(self.kv_dtype)}"

    def context_calculation(self, batch: int, context: int) -> str:
        """The bytes of a context, written out: for each number of positions that layers keep, the bytes of one."""
        many: dict[int, list[LayerCache]] = {}
        for cache in self.caches:
            if cache.steps:
                many.setdefault(cache.positions(context), []).append(cache)
        terms = [
            f"{positions:,} positions × {self._cached(caches, 1):,} bytes"
            for positions, caches in many.items()
        ]
        total = " + ".join(terms) or f"{context:,} positions × 0 bytes"
        return f"batch {batch:,} × {f'({total})' if len(terms) > 1 else total}"

    def state_calculation(self, batch: int, caches: Sequence[LayerCache] | None = None) -> str:
        """The bytes of the states, written out."""
        terms = []
        for cache in self.caches if caches is None else caches:
            for step in cache.states:
                inner = " × ".join(f"{self.graph.dims[axis]:,}" for axis in state_axes(step))
                terms.append(f"{cache.layers:,} layers × {inner} × {width(self.state_dtype(step))}")
        total = " + ".join(terms) or "0"
        return f"batch {batch:,} × {f'({total})' if len(terms) > 1 else total}"

    def _cached(self, caches: Sequence[LayerCache], context: int, devices: int = 1) -> int:
        return dtypes.size_bytes(self.kv_dtype, elements(self.graph, caches, context, devices))

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


def width(dtype: str) -> str:
    """`2 bytes`, `4 bits`."""
    bits = dtypes.BITS[dtype]
    return f"{bits // 8} byte{'s' * (bits > 8)}" if bits % 8 == 0 else f"{bits} bits"
