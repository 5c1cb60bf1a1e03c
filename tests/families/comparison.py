"""A published configuration described by the atlas, compared with what transformers gives for it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from atlas.analyse import parameters
from atlas.analyse.flops import flops
from atlas.analyse.memory import memory
from atlas.errors import AtlasError, NotDescribed
from atlas.graph import tensors as described
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library
from tests.families import expected

MOST = 10
"""Names listed of one kind of difference."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One compared figure.

    Attributes:
        what: `parameters`, `active`, `tensors`, …
        note: what differs, in words; or why there is no figure.
    """

    what: str
    expected: object
    found: object
    note: str = ""

    @property
    def equal(self) -> bool:
        return self.expected == self.found


def registered(library: Library) -> set[str]:
    """The values of `model_type` that some architecture describes."""
    found = set()
    for path in library.paths("architectures").values():
        configs = tomllib.loads(path.read_text(encoding="utf-8")).get("configs", {})
        found |= {table.get("model_type") or name for name, table in configs.items()}
    return found


def compare(name: str, library: Library) -> list[Figure]:
    """Every figure of the configuration; those after an error are missing.

    Raises:
        AtlasError: the configuration cannot be described at all.
    """
    return list(figures(bound(name, library), expected.EXPECTED[name], expected.tensors(name)))


def bound(name: str, library: Library) -> Graph:
    """The configuration's graph.

    Raises:
        AtlasError: it cannot be described.
    """
    return bind(from_path(expected.config_path(name), library), library)


def figures(
    graph: Graph, wanted: expected.Expected, names: Mapping[str, tuple[int, ...]]
) -> Iterator[Figure]:
    yield Figure("parameters", wanted.parameters, parameters.total(graph))
    yield Figure("active", wanted.active or wanted.parameters, parameters.active(graph))
    yield from _tensors(graph, wanted, names)
    yield from _memory(graph, wanted)
    yield from _flops(graph, wanted)


def _tensors(
    graph: Graph, wanted: expected.Expected, names: Mapping[str, tuple[int, ...]]
) -> Iterator[Figure]:
    convention = described.published(graph)
    listed = list(described.expected(graph, convention))
    ours = {tensor.name: tensor.shape for tensor in listed}
    yield Figure(
        "tensors", wanted.tensors, len(listed), "" if len(listed) == len(ours) else "a name occurs twice"
    )
    yield Figure("elements", wanted.elements, sum(map(math.prod, ours.values())))
    yield Figure("buffers", tuple(wanted.buffers), parameters.buffers(graph, convention))
    rows = described.rows(graph, convention)
    by_weight = {weight.id: row.template.text for row in rows for weight in row.weights}
    tied = {row.template.text: by_weight.get(row.tied_to.id, "") for row in rows if row.tied_to is not None}
    yield Figure("tied", dict(wanted.tied), tied)
    for what, found in (
        ("missing", [name for name in names if name not in ours]),
        ("unexpected", [name for name in ours if name not in names]),
        (
            "shapes",
            [
                f"{name} {list(shape)}, not {list(ours[name])}"
                for name, shape in names.items()
                if name in ours and ours[name] != shape
            ],
        ),
    ):
        more = f" … and {len(found) - MOST:,} more" if len(found) > MOST else ""
        yield Figure(what, 0, len(found), "; ".join(found[:MOST]) + more)


def _memory(graph: Graph, wanted: expected.Expected) -> Iterator[Figure]:
    try:
        found = memory(graph, context=1, kv_dtype="BF16")
    except NotDescribed as error:
        yield Figure("KV bytes per token", wanted.kv, None, error.message)
        return
    yield Figure(
        "KV bytes per token", wanted.kv, found.kv_bytes_per_token, found.calculations["kv_per_token"]
    )
    beyond = wanted.kv if wanted.kv_beyond is None else wanted.kv_beyond
    yield Figure("… beyond the window", beyond, found.kv_bytes_per_token_beyond_window)
    windowed = [kind for kind in found.by_layer_kind if kind.window is not None]
    yield Figure("window", {wanted.window} - {None}, {kind.window for kind in windowed})
    yield Figure("windowed layers", wanted.windowed_layers or 0, sum(kind.layers for kind in windowed))
    states = sum(kind.state_elements for kind in found.by_layer_kind)
    yield Figure("state elements", sum(wanted.state_elements.values()), states)


def _flops(graph: Graph, wanted: expected.Expected) -> Iterator[Figure]:
    try:
        found = flops(graph, positions=128)
    except NotDescribed as error:
        yield Figure("FLOPs 1×128", wanted.flops, None, error.message)
        return
    if wanted.flops_caveat:
        yield Figure(
            "FLOPs of products with plain matrices",
            wanted.products,
            plain_products(graph),
            wanted.flops_caveat,
        )
    else:
        how = ", ".join(f"{row.id} {row.flops:,}" for row in found.components)
        yield Figure("FLOPs 1×128", wanted.flops, found.total_flops, how)


def plain_products(graph: Graph) -> int:
    """FLOPs of the products with a whole matrix of weights, 1 × 128: torch counts them as `mm` and `addmm`."""
    sizes = {**graph.dims, "batch": 1, "positions": 128, "keys": 128}
    return sum(
        2 * math.prod(sizes[axis] for axis in graph.multiplied(step)) * block.instances
        for block in graph.blocks
        for node in block.nodes
        for step in node.steps
        if step.op == "contract" and step.weights and not any(operand.chosen for operand in step.of)
    )


def attempt(name: str, library: Library) -> list[Figure]:
    """The same, with an error as a figure that differs."""
    try:
        return compare(name, library)
    except AtlasError as error:
        return [Figure("description", "described", "refused", error.message)]
