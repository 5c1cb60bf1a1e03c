"""What is kept between passes: cached positions, which a window limits, and states, which do not grow.

A `cache` step keeps one entry for each position. With a window of w positions (`by`), a layer attends to the last w alone, so
min(context, w) entries are needed. A step with a `state` keeps that, whatever the context: a linear attention's sums, the last
inputs of a short convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from atlas.analyse import devices as parallel
from atlas.grammar import shapes
from atlas.graph.graph import Graph, Step


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What layers of one kind keep.

    Attributes:
        kind: the block that the layers have.
        steps: the steps that cache positions, with one window.
        window: positions that are kept; None if all are.
        states: the steps that keep a state.
    """

    kind: str
    layers: int
    window: int | None
    steps: tuple[Step, ...]
    states: tuple[Step, ...]

    def positions(self, context: int) -> int:
        """How many of the context's positions are kept."""
        return context if self.window is None else min(context, self.window)


def layer_caches(graph: Graph) -> list[LayerCache]:
    """Every kind of layer that keeps something, in execution order; one entry for each of its windows."""
    found: dict[tuple[str, int | None], LayerCache] = {}
    for block in graph.blocks:
        steps = [step for node in block.nodes for step in node.steps]
        by_window: dict[int | None, list[Step]] = {}
        for step in steps:
            if step.op == "cache":
                by_window.setdefault(window_of(step), []).append(step)
        states = tuple(step for step in steps if step.state is not None)
        if states and not by_window:
            by_window[None] = []
        for i, (window, cached) in enumerate(by_window.items()):
            # One block may stand in several choices of a stack.
            before = found.get((block.id, window))
            layers = block.instances + (before.layers if before else 0)
            found[block.id, window] = LayerCache(block.id, layers, window, tuple(cached), () if i else states)
    return list(found.values())


def window_of(step: Step) -> int | None:
    """The window of a `cache` or `mask` step; None without one."""
    return int(step.by) if isinstance(step.by, int | float) and step.by > 0 else None


def position_axes(step: Step) -> list[str]:
    """The axes of one cached position."""
    return [axis for axis in shapes.atoms(step.shape) if axis not in ("batch", "keys")]


def state_axes(step: Step) -> list[str]:
    """The axes of one sequence's state."""
    return [axis for axis in shapes.atoms(step.state or ()) if axis != "batch"]


def elements(graph: Graph, caches: Sequence[LayerCache], context: int, devices: int = 1) -> int:
    """Cached elements of one sequence of that context on each device, in all layers."""
    return sum(cache.positions(context) * per_position(graph, cache, devices) for cache in caches)


def per_position(graph: Graph, cache: LayerCache, devices: int = 1) -> int:
    """Elements of one cached position on each device, in all layers of the kind."""
    return cache.layers * sum(
        parallel.cached_on_each(graph, shapes.size(position_axes(step), graph.dims), step.shape, devices)
        for step in cache.steps
    )


def state_elements(graph: Graph, cache: LayerCache, step: Step, devices: int = 1) -> int:
    """Elements of a state of one sequence on each device, in all layers of the kind."""
    size = shapes.size(state_axes(step), graph.dims)
    return cache.layers * parallel.cached_on_each(graph, size, step.state or (), devices)
