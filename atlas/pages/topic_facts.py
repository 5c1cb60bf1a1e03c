"""What a topic's page says of the model's own numbers: angles of rotation, bytes of a cache, windows, experts, states."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from atlas import spec
from atlas.analyse import parameters
from atlas.grammar.shapes import atoms
from atlas.graph import tensors
from atlas.graph.graph import Step
from atlas.pages.parts import Parts

MOST_CHARACTERS = 60
"""Longest setting of RoPE scaling that is shown in full."""


def facts(parts: Parts, topic: spec.Topic, steps: Sequence[Step]) -> Iterator[str]:
    """The sentences about the steps of a topic, whose operation says what there is to say."""
    operations = [topic.op] if topic.op else ["cache"]
    for operation in operations:
        about = [step for step in steps if step.op == operation]
        if about and operation in _FACTS:
            yield from _FACTS[operation](parts, about)


def _rotation(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    graph = parts.graph
    for theta, axis, share, kind in dict.fromkeys(
        (step.by, step.over, step.share, step.rope) for step in steps
    ):
        if axis is None or isinstance(theta, bool | str) or theta is None:
            continue
        width = graph.dims[axis]
        turned = int(width * share)
        pairs = turned // 2
        slowest = float(theta) ** (2 * (pairs - 1) / max(turned, 1))
        part = "" if turned == width else f", of which the first {turned} rotate"
        yield (
            f"θ is {theta:,.15g} and a head is h = {width} wide{part}: {pairs} pairs of entries. The first turns by 1 radian per "
            f"position, a full turn every {2 * math.pi:.4g} positions; the last every {2 * math.pi * slowest:,.0f} positions"
            + (", before scaling." if _scaling(parts, kind) else ".")
        )
    for kind in dict.fromkeys(step.rope for step in steps):
        if scaling := _scaling(parts, kind):
            where = f" in layers of the kind {kind}" if kind in parts.model.ropes else ""
            yield f"Scaling{where}: {', '.join(f'{name} {_short(value)}' for name, value in scaling.items())}."
    yield from _pairing(parts, steps)


def _scaling(parts: Parts, kind: str) -> Mapping[str, object]:
    """The settings of RoPE scaling for a kind of layer; empty if it is not scaled."""
    return parts.model.ropes.get(kind, parts.model.rope)


def _short(value: object) -> str:
    """A setting; a list of numbers by its length."""
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"with {len(text.split()):,} numbers"


def _pairing(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    """Which stored entries of a head form a pair, in each convention.

    A pair of the description is what the step says, entries apart by half of what rotates or neighbours. A convention
    that stores the two entries of a pair side by side has neighbours instead.
    """
    graph = parts.graph
    rotated = {step.of[0].name for step in steps}
    projected = {w.id for step in parts.steps() if step.sets in rotated for w in step.weights}
    described_apart = any(step.pairs == "halves" for step in steps)
    first = steps[0]
    half = int(graph.dims.get(first.over or "", 0) * first.share) // 2
    for convention, table in graph.architecture.conventions.items():
        rows = [
            (weight.component, not _pair_before_two(atoms(layout)))
            for row in tensors.rows(graph, convention)
            for weight, layout in zip(row.weights, row.layouts, strict=True)
            if weight.id in projected and len(weight.shape) > 1
        ]
        in_order = sorted({name for name, as_described in rows if as_described})
        if described_apart and in_order:
            yield (
                f"{table.title} ({convention}): entries j and j + {half} of a head form pair j; the rows of "
                f"{' and '.join(in_order)} are stored in that order."
            )
        else:
            yield f"{table.title} ({convention}): the neighbouring entries 2j and 2j + 1 of a head form pair j."


def _pair_before_two(axes: list[str]) -> bool:
    return "two" in axes and "pair" in axes and axes.index("pair") < axes.index("two")


def _cache(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    graph = parts.graph
    total, said = 0, []
    for node in dict.fromkeys(step.node for step in steps):
        of_node = {step.id: step for step in steps if step.node == node}
        each = [
            [graph.dims[axis] for axis in atoms(step.shape) if axis in graph.dims]
            for step in of_node.values()
        ]
        layers = graph.times(node)
        total += sum(math.prod(sizes) for sizes in each) * layers
        products = " + ".join(" × ".join(f"{size:,}" for size in sizes) for sizes in each)
        said.append(f"{products} numbers in each of {layers:,} layers")
    yield (
        f"Each position adds {', and '.join(said)}, {total:,} in all: {2 * total:,} bytes in a 16-bit dtype."
    )
    windows = sorted({step.by for step in steps if isinstance(step.by, int) and step.by > 0})
    for window in windows:
        yield f"Layers with a window of {window:,} positions need no more than that many."


def _windows(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    layers = sum(
        block.instances for block in parts.graph.blocks if block.layers is not None and _mixes(block.nodes)
    )
    for window in sorted({step.by for step in steps if isinstance(step.by, int | float)}):
        bounded = sum(
            block.instances
            for block in parts.graph.blocks
            if any(step.op == "mask" and step.by == window for node in block.nodes for step in node.steps)
        )
        yield (
            f"In {bounded:,} of the {layers:,} layers with attention a position sees itself and the {int(window) - 1:,} "
            "positions before it."
        )


def _mixes(nodes: Sequence[object]) -> bool:
    return any(step.op == "mask" for node in nodes for step in getattr(node, "steps", ()))


def _experts(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    dims = parts.graph.dims
    for node in dict.fromkeys(step.node for step in steps):
        yield (
            f"In each of {parts.graph.times(node):,} layers a token passes through {dims['n_experts_per_token']:,} of "
            f"{dims['n_experts']:,} routed experts."
        )
    yield (
        f"{parameters.active(parts.graph):,} of {parameters.total(parts.graph):,} parameters are active for one text token."
    )


def _states(parts: Parts, steps: Sequence[Step]) -> Iterator[str]:
    for step in {step.id: step for step in steps}.values():
        if step.state is None:
            continue
        sizes = [parts.graph.dims[axis] for axis in atoms(step.state) if axis in parts.graph.dims]
        yield (
            f"The state has {' × '.join(f'{size:,}' for size in sizes)} = {math.prod(sizes):,} numbers in each of "
            f"{parts.graph.times(step.node):,} layers, whatever the number of positions."
        )


_FACTS: Mapping[str, Callable[[Parts, Sequence[Step]], Iterator[str]]] = {
    "rotate": _rotation,
    "cache": _cache,
    "mask": _windows,
    "top_k": _experts,
    "delta_rule": _states,
}
"""Operation -> what is said of the steps that have it."""
