"""The page of a topic: the steps with its operation, wherever the model has them, and what follows from the model's own numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator

from atlas import spec
from atlas.grammar.shapes import atoms
from atlas.graph import tensors
from atlas.graph.graph import Step
from atlas.pages.content import Page
from atlas.pages.parts import Parts


def page(parts: Parts, topic: spec.Topic) -> Page:
    """The page of a topic whose operation the model has."""
    steps = [step for step in parts.steps() if step.op == topic.op]
    inputs = [
        parts.value(operand, parts.nodes[step.node])
        for step in steps
        for operand in step.of
        if operand.weight is None
    ]
    return parts.page(
        node=topic.id,
        kind="topic",
        words=topic,
        inputs=list(dict.fromkeys(inputs)),
        outputs=list(dict.fromkeys(parts.result(step) for step in steps)),
        instances=max(parts.graph.times(step.node) for step in steps),
        notes=[
            f"Computed in the steps {', '.join(step.id for step in steps)}.",
            *_facts(parts, topic.op, steps),
        ],
        sources=parts.sources(topic.cites),
    )


def _facts(parts: Parts, op: str, steps: list[Step]) -> Iterator[str]:
    """What an operation's page says of the model's own numbers."""
    if op == "rotate":
        yield from _rotation(parts, steps)
    elif op == "cache":
        yield _cache(parts, steps)


def _rotation(parts: Parts, steps: list[Step]) -> Iterator[str]:
    graph = parts.graph
    for theta, axis in dict.fromkeys((step.by, step.over) for step in steps):
        if axis is None or isinstance(theta, bool | str) or theta is None:
            continue
        width = graph.dims[axis]
        pairs = width // 2
        slowest = float(theta) ** (2 * (pairs - 1) / width)
        yield (
            f"θ is {theta:,.15g} and a head is h = {width} wide: {pairs} pairs of entries. The first turns by 1 radian per "
            f"position, a full turn every {2 * math.pi:.4g} positions; the last every {2 * math.pi * slowest:,.0f} positions"
            + (", before scaling." if parts.model.rope else ".")
        )
    if parts.model.rope:
        settings = ", ".join(f"{name} {value}" for name, value in parts.model.rope.items())
        yield f"Scaling: {settings}."
    yield from _pairing(parts, steps)


def _pairing(parts: Parts, steps: list[Step]) -> Iterator[str]:
    """Which stored entries of a head form a pair, in each convention."""
    graph = parts.graph
    rotated = {step.of[0].name for step in steps}
    projected = {w.id for step in parts.steps() if step.sets in rotated for w in step.weights}
    for convention, table in graph.architecture.conventions.items():
        others = sorted(
            weight.component
            for row in tensors.rows(graph, convention)
            for weight, layout in zip(row.weights, row.layouts, strict=True)
            if weight.id in projected and len(weight.shape) > 1 and "two" in atoms(layout)
        )
        step = steps[0]
        half = int(graph.dims[step.over or ""] * step.share) // 2
        if (step.pairs == "neighbours") != bool(others):
            yield f"{table.title} ({convention}): the neighbouring entries 2j and 2j + 1 of a head form pair j."
        else:
            rows = sorted(graph.weights[id].component for id in projected if len(graph.weights[id].shape) > 1)
            yield (
                f"{table.title} ({convention}): entries j and j + {half} of a head form pair j; the rows of "
                f"{' and '.join(rows)} are stored in that order."
            )


def _cache(parts: Parts, steps: list[Step]) -> str:
    graph = parts.graph
    each = [[graph.dims[axis] for axis in atoms(step.shape) if axis in graph.dims] for step in steps]
    total = sum(math.prod(sizes) * graph.times(step.node) for sizes, step in zip(each, steps, strict=True))
    products = " + ".join(" × ".join(f"{size:,}" for size in sizes) for sizes in each)
    return (
        f"Each position adds {products} numbers in each of {graph.times(steps[0].node):,} layers, {total:,} in all: "
        f"{2 * total:,} bytes in a 16-bit dtype."
    )
