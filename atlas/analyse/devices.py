"""Weights and key/value caches divided over several devices (tensor parallelism).

A matrix is divided along one axis, in whole heads, rows or columns: the axis that model-parallel files divide (`cut` in an
architecture's conventions), else the first that divides evenly. A vector without a `cut` is on every device. With more
devices than key and value heads, each of these heads is on several devices.
"""

from __future__ import annotations

from atlas.errors import UsageError
from atlas.grammar import shapes
from atlas.grammar.names import holding
from atlas.graph.graph import Graph, Weight
from atlas.units import require_count

KV_HEADS = "n_kv_heads"

MOST_DEVICES = 1024
"""The largest number of devices that is suggested or tried."""


def per_device(graph: Graph, devices: int) -> int:
    """Parameters on each device.

    Raises:
        UsageError: a matrix does not divide evenly; the message names its axis, the hint what divides.
    """
    require_count(devices, "--devices")
    found = 0
    for weight, axes in _divisible_axes(graph):
        axis = next((axis for axis in axes if _divides(graph, axis, devices)), None)
        if axes and axis is None:
            raise _uneven(graph, weight, axes[0], devices)
        if graph.tied_to(weight) is None:
            parts = 1 if axis is None else _parts(graph, axis, devices)
            found += graph.size(weight) // parts * graph.instances(weight)
    return found


def kv_head_copies(graph: Graph, devices: int) -> int:
    """On how many devices each key and value head is: 1 unless there are more devices than heads."""
    return -(-devices // graph.dims[KV_HEADS]) if KV_HEADS in graph.dims else 1


def copies_note(graph: Graph, devices: int) -> list[str]:
    """A note that key and value heads are repeated, if they are."""
    copies = kv_head_copies(graph, devices)
    if copies == 1:
        return []
    heads = graph.dims[KV_HEADS]
    return [
        f"{heads:,} key and value head{'s' * (heads > 1)} on {devices:,} devices: each is on {copies:,} devices, with "
        "its projections and its cache, and is counted on each."
    ]


def cached_on_each(graph: Graph, elements: int, shape: shapes.Shape, devices: int) -> int:
    """The elements of a cached tensor on one device: divided by heads, and whole if it has none."""
    return elements // _parts(graph, KV_HEADS, devices) if KV_HEADS in shapes.atoms(shape) else elements


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
    return size % devices == 0 or (axis == KV_HEADS and devices % size == 0)


def _parts(graph: Graph, axis: str, devices: int) -> int:
    return min(devices, graph.dims[axis]) if axis == KV_HEADS else devices


def _divisible_axes(graph: Graph) -> list[tuple[Weight, list[str]]]:
    """Each weight with the axes along which it may be divided, the preferred one first; none for one that is not divided."""
    cuts = {
        name: row.cut
        for convention in graph.architecture.conventions.values()
        for row in convention.tensors.values()
        if not isinstance(row, str) and row.cut
        for name in holding(row.holds).weights
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
