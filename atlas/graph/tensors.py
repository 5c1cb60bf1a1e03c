"""Which tensors a checkpoint holds in a convention: every name and shape, forwards from the description and backwards.

A convention's rows say what each stored tensor holds. Here they are checked against the bound graph (every weight named
once, nothing named that no component has), given their layers, and expanded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from atlas import spec
from atlas.errors import SpecError, UsageError
from atlas.grammar import shapes
from atlas.grammar.names import Holding, Template, holding
from atlas.grammar.shapes import REST, Shape, atoms
from atlas.graph.graph import Graph, Weight

MOST_NAMES = 1_000_000
"""Of one row: a thousand layers of a thousand experts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a convention's table, bound.

    Attributes:
        layouts: for each weight it holds, how that weight lies in the stored tensor; `REST` filled in.
        shape: the stored tensor's shape.
        indices: for each placeholder but the layer's, how many it counts.
        layers: (placeholder, layers) where the tensor is one per layer.
        tied_to: the weight whose matrix this is, where the model ties them.
    """

    template: Template
    holds: Holding
    weights: tuple[Weight, ...]
    layouts: tuple[Shape, ...]
    shape: tuple[int, ...]
    indices: tuple[tuple[str, int], ...]
    layers: tuple[str, Sequence[int]] | None
    tied_to: Weight | None

    def names(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Every name with its indices, layer by layer."""
        counts = [self.layers[1]] if self.layers else []
        words = [self.layers[0]] if self.layers else []
        for word, count in self.indices:
            words.append(word)
            counts.append(range(count))
        for numbers in itertools.product(*counts):
            indices = dict(zip(words, numbers, strict=True))
            yield self.template.expand(**indices), indices


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor a checkpoint must hold: one row at its indices."""

    name: str
    shape: tuple[int, ...]
    row: Row
    layer: int | None


def convention(graph: Graph, name: str) -> spec.Convention:
    """The architecture's convention of that name.

    Raises:
        UsageError: it has none.
    """
    known = graph.architecture.conventions
    if name not in known:
        raise UsageError(
            f"{graph.architecture.id} has no names in the convention {name!r}", hint=f"use {', '.join(known)}"
        )
    return known[name]


def published(graph: Graph) -> str:
    """The convention checkpoints are published in: the Hub's where there is one, else the architecture's first."""
    known = graph.architecture.conventions
    return "hf" if "hf" in known else next(iter(known))


def rows(graph: Graph, name: str) -> list[Row]:
    """The convention's table, bound to the model; rows for weights this model does not have are left out.

    Raises:
        SpecError: a row names a weight no component declares, a weight is named twice or not at all, a layout does
            not rearrange the weight it is for, or a placeholder counts nothing.
    """
    table = convention(graph, name)
    where = f"architecture {graph.architecture.id}: conventions.{name}"
    index_axes = {axis.index: word for word, axis in graph.axes.items() if axis.index}
    known = {part.node.id for part in graph.architecture.graph if part.node is not None}
    known |= {node.id for block in graph.architecture.blocks.values() for node in block}
    here = [(block, node) for block in graph.blocks for node in block.nodes]
    bound = {node.id for _, node in here}
    declared = {f"{node.id}.{weight}" for _, node in here for weight in node.component.weights}
    stands = {(weight.id, block.id) for block, node in here for weight in node.weights}
    found: list[Row] = []
    named: set[tuple[str, str]] = set()
    for text, entry in table.tensors.items():
        holds = holding(entry if isinstance(entry, str) else entry.holds)
        only_in = None if isinstance(entry, str) else entry.block
        nodes = [weight.partition(".")[0] for weight in holds.weights]
        unknown = [
            weight
            for weight, node in zip(holds.weights, nodes, strict=True)
            if node not in known or (node in bound and weight not in declared)
        ]
        if unknown:
            raise SpecError(f"{where}: {text!r} holds {', '.join(unknown)}, which no component declares")
        if only_in is not None:
            block = {node.id for node in graph.architecture.blocks.get(only_in, [])}
            if not block.issuperset(nodes):
                raise SpecError(f"{where}: {text!r}: in = {only_in!r}: no such block has {', '.join(nodes)}")
        weights = [
            weight
            for weight in (graph.weights.get(name) for name in holds.weights)
            if weight is not None and (only_in is None or (weight.id, only_in) in stands)
        ]
        if not weights:
            continue
        if len(weights) != len(holds.weights):
            raise SpecError(f"{where}: {text!r} packs weights of which this model has only some")
        for weight in weights:
            places = {place for place in stands if place[0] == weight.id and only_in in (None, place[1])}
            if places & named:
                raise SpecError(f"{where}: {weight.id} is named twice")
            named |= places
        found.append(_row(graph, where, text, holds, tuple(weights), only_in, index_axes))
    if missing := {weight for weight, _ in stands - named}:
        raise SpecError(f"{where}: gives no name to {', '.join(sorted(missing))}")
    return found


def _row(
    graph: Graph,
    where: str,
    text: str,
    holds: Holding,
    weights: tuple[Weight, ...],
    only_in: str | None,
    index_axes: dict[str, str],
) -> Row:
    template = Template(text)
    blocks = [
        [
            block
            for block in graph.blocks
            if only_in in (None, block.id) and any(node.id == weight.node for node in block.nodes)
        ]
        for weight in weights
    ]
    stack = blocks[0][0].stack
    layers = [
        each[0].layers or () if len(each) == 1 else sorted(i for block in each for i in block.layers or ())
        for each in blocks
    ]
    if any(each[0].stack != stack for each in blocks) or any(
        list(own) != list(layers[0]) for own in layers[1:]
    ):
        raise SpecError(f"{where}: {text!r} packs weights that stand in different layers")
    layer_word = next(
        (part.index for part in graph.parts if part.id == stack and stack and hasattr(part, "index")), None
    )
    for word in template.placeholders:
        if word not in index_axes:
            raise SpecError(f"{where}: {text!r}: no axis counts {{{word}}}")
    if layer_word is not None and layer_word not in template.placeholders:
        raise SpecError(
            f"{where}: {text!r}: {weights[0].id} stands in the layers of a stack, expected {{{layer_word}}}"
        )
    gone = {index_axes[word]: word for word in template.placeholders if word != layer_word}
    for axis in gone:
        if any(axis not in atoms(weight.shape) for weight in weights):
            raise SpecError(f"{where}: {text!r}: {axis} is no axis of {weights[0].id}")
    layouts = tuple(_lie(graph, where, text, holds, weight, set(gone)) for weight in weights)
    sizes = [[shapes.size(group, graph.dims) for group in layout] for layout in layouts]
    shape = sizes[0]
    along = holds.packed_along
    if along is not None:
        shape = [sum(size[i] for size in sizes) if i == along else n for i, n in enumerate(sizes[0])]
    indices = tuple((word, graph.dims[axis]) for axis, word in gone.items())
    names = math.prod(count for _, count in indices) * (len(layers[0]) if layer_word else 1)
    if names > MOST_NAMES:
        raise SpecError(
            f"{where}: {text!r} stands for {names:,} tensors, at most {MOST_NAMES:,} can be listed"
        )
    return Row(
        template=template,
        holds=holds,
        weights=weights,
        layouts=layouts,
        shape=tuple(shape),
        indices=indices,
        layers=(layer_word, layers[0]) if layer_word else None,
        tied_to=graph.tied_to(weights[0]),
    )


def _lie(graph: Graph, where: str, text: str, holds: Holding, weight: Weight, gone: set[str]) -> Shape:
    """How a weight lies in the tensor that holds it: the layout, with its `*` replaced by what is left."""
    own = tuple(
        group
        for group in (tuple(axis for axis in group if axis not in gone) for group in weight.shape)
        if group
    )
    if holds.layout is None:
        return own
    spelled = {axis for axis in atoms(holds.layout) if axis != REST}
    flat = shapes.take_apart(atoms(own), spelled, graph.products)
    rest = tuple(axis for axis in flat if axis not in spelled)
    lies = tuple(
        tuple(itertools.chain.from_iterable(rest if axis == REST else (axis,) for axis in group))
        for group in holds.layout
    )
    if sorted(atoms(lies)) != sorted(flat):
        raise SpecError(
            f"{where}: {text!r}: ({shapes.render(holds.layout)}) does not rearrange ({shapes.render(own)})"
        )
    return lies


def expected(graph: Graph, name: str) -> Iterator[Tensor]:
    """Every tensor a checkpoint of this model must hold in that convention, in the table's order, layer by layer.

    A tied matrix is left out in its second place, unless the convention stores it in both.
    """
    stores_tied = convention(graph, name).stores_tied
    for row in rows(graph, name):
        if row.tied_to is not None and not stores_tied:
            continue
        word = row.layers[0] if row.layers else ""
        for full, indices in row.names():
            yield Tensor(full, row.shape, row, indices.get(word))
