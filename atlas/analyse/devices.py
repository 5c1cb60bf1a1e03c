"""Weights and key/value caches divided over several devices (tensor parallelism).

A matrix is divided along one axis, in whole heads, rows or columns: the axis that model-parallel files divide (`cut` in an
architecture's conventions), else the first that divides evenly. A vector without a `cut` is on every device.

What is cached is divided along the heads that it has (axes with `split` in the vocabulary), and is whole on every device if
it has none. Key and value heads are a part of the query heads, which divide further: with more devices than key and value
heads, each of these is on several devices.
"""

from __future__ import annotations

from atlas import spec
from atlas.errors import UsageError
from atlas.grammar import shapes
from atlas.grammar.names import holding
from atlas.graph.graph import Graph, Step, Weight
from atlas.units import require_count

MOST_DEVICES = 1024
"""The largest number of devices that is suggested or tried."""


def per_device(graph: Graph, devices: int, *, buffers: bool = False) -> int:
    """Parameters on each device; with `buffers`, all stored elements.

    Raises:
        UsageError: a matrix does not divide evenly; the message names its axis, the hint what divides.
    """
    require_count(devices, "--devices")
    found = 0
    for weight, axes in _divisible_axes(graph):
        axis = next((axis for axis in axes if _divides(graph, axis, devices)), None)
        if axes and axis is None:
            raise _uneven(graph, weight, axes[0], devices)
        if graph.tied_to(weight) is None and (buffers or weight.words.trained):
            parts = 1 if axis is None else _parts(graph, axis, devices)
            found += graph.size(weight) // parts * graph.instances(weight)
    return found


def kv_head_copies(graph: Graph, devices: int) -> int:
    """On how many devices each cached head is: 1 unless there are more devices than heads."""
    axes = {axis for step in _cached(graph) for axis in _heads(graph, step.shape)}
    return max((-(-devices // graph.dims[axis]) for axis in axes if _repeated(graph, axis)), default=1)


def copies_note(graph: Graph, devices: int) -> list[str]:
    """Notes that key and value heads are repeated, and that a cache without heads is, if they are."""
    if devices == 1:
        return []
    notes = []
    copied = {
        axis: -(-devices // graph.dims[axis])
        for step in _cached(graph)
        for axis in _heads(graph, step.shape)
        if _repeated(graph, axis) and devices > graph.dims[axis]
    }
    for axis, copies in copied.items():
        heads = graph.dims[axis]
        notes.append(
            f"{heads:,} key and value head{'s' * (heads > 1)} on {devices:,} devices: each is on {copies:,} devices, with "
            "its projections and its cache, and is counted on each."
        )
    whole = [step.sets for step in _cached(graph) if not _heads(graph, step.shape)]
    if whole:
        names = ", ".join(dict.fromkeys(whole))
        notes.append(
            f"What is cached without heads ({names}) is whole on each device, and is counted on each."
        )
    return notes


def cached_on_each(graph: Graph, elements: int, shape: shapes.Shape, devices: int) -> int:
    """The elements of a cached tensor or a state on one device: divided by heads, and whole if it has none."""
    axis = next((axis for axis in _heads(graph, shape) if _divides(graph, axis, devices)), None)
    return elements if axis is None else elements // _parts(graph, axis, devices)


def _cached(graph: Graph) -> list[Step]:
    """Every step that keeps something between passes."""
    return [
        step
        for block in graph.blocks
        for node in block.nodes
        for step in node.steps
        if step.op == "cache" or step.state is not None
    ]


def _heads(graph: Graph, shape: shapes.Shape) -> list[str]:
    return [axis for axis in shapes.atoms(shape) if axis in graph.dims and graph.axes[axis].split]


def _repeated(graph: Graph, axis: str) -> bool:
    """Whether its entries are on several devices where there are more devices than entries."""
    return graph.axes[axis].split and any(
        graph.axes[whole].split and axis in parts for whole, parts in graph.products.items()
    )


def dividing(graph: Graph) -> list[int]:
    """The numbers of devices, 2 to `MOST_DEVICES`, over which every matrix divides evenly."""
    needed = [axes for _, axes in _divisible_axes(graph) if axes]
    needed = [axes for i, axes in enumerate(needed) if axes not in needed[:i]]
    return [
        devices
        for devices in range(2, MOST_DEVICES + 1)
        if all(any(_divides(graph, axis, devices) for axis in axes) for axes in needed)
    ]


def _divides(graph: Graph, axis: str, devices: int) -> bool:
    size = graph.dims[axis]
    return size % devices == 0 or (_repeated(graph, axis) and devices % size == 0)


def _parts(graph: Graph, axis: str, devices: int) -> int:
    return min(devices, graph.dims[axis]) if _repeated(graph, axis) else devices


def _divisible_axes(graph: Graph) -> list[tuple[Weight, list[str]]]:
    """Each weight with the axes along which it may be divided, the preferred one first; none for one that is not divided."""
    cuts = {
        name: row.cut
        for convention in graph.architecture.conventions.values()
        for row in convention.tensors.values()
        if isinstance(row, spec.Row) and row.cut
        for text in ([row.holds] if isinstance(row.holds, str) else row.holds)
        for name in holding(text).weights
    }
    found = []
    for weight in graph.weights.values():
        cut = cuts.get(weight.id, "either" if len(weight.shape) > 1 else None)
        groups = {
            None: weight.shape[:0],
            "rows": weight.shape[:1],
            "columns": weight.shape[1:2],
            "either": weight.shape[:2],
        }
        found.append((weight, [group[0] for group in groups[cut] if group]))
    return found


def _uneven(graph: Graph, weight: Weight, axis: str, devices: int) -> UsageError:
    size = graph.dims[axis]
    possible = dividing(graph)
    if possible:
        listed = [f"{each:,}" for each in possible[:12]] + (["…"] if len(possible) > 12 else [])
        hint = f"every matrix divides over {' or '.join([', '.join(listed[:-1]), listed[-1]] if listed[1:] else listed)} devices"
    else:
        hint = "no number of devices divides every matrix of this model"
    if any(group == (axis,) for group in weight.shape):
        hint += f"; {axis} padded to {-(-size // devices) * devices:,} would divide over {devices:,}"
    return UsageError(
        f"{weight.component}: {axis} is {size:,} ({graph.axes[axis].meaning}), which does not divide evenly over "
        f"{devices:,} devices",
        hint=hint,
    )
