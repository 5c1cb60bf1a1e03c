"""The tensors of a checkpoint in a convention: every name and shape.

A row of a convention states which weights a stored tensor contains. The rows are checked against the bound graph (each
weight has exactly one name, and each name an existing weight), get their layers, and are expanded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from atlas import spec
from atlas.errors import SpecError, UsageError
from atlas.grammar import shapes
from atlas.grammar.conditions import holds as is_met
from atlas.grammar.names import Holding, Template, holding
from atlas.grammar.shapes import REST, Shape, atoms
from atlas.graph.graph import Graph, Weight

MOST_NAMES = 1_000_000
"""Most names of one row: a thousand layers of a thousand experts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a convention's table, bound.

    Attributes:
        layouts: the layout of each weight in the stored tensor, with `REST` filled in.
        shape: the stored tensor's shape.
        indices: placeholder -> number of values, except for the layer.
        layers: (placeholder, layers) if there is one tensor in each layer.
        tied_to: the weight whose matrix this is, if the model ties them.
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
        """Every name with its indices, in the order of layers."""
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
    """A tensor that a checkpoint must contain: a row at given indices."""

    name: str
    shape: tuple[int, ...]
    row: Row
    layer: int | None


def convention(graph: Graph, name: str) -> spec.Convention:
    """A convention of the architecture by name.

    Raises:
        UsageError: there is none of that name.
    """
    known = graph.architecture.conventions
    if name not in known:
        raise UsageError(
            f"{graph.architecture.id} has no names in the convention {name!r}", hint=f"use {', '.join(known)}"
        )
    return known[name]


def published(graph: Graph) -> str:
    """The convention of published checkpoints: `hf` if the architecture has it, else its first."""
    known = graph.architecture.conventions
    return "hf" if "hf" in known else next(iter(known))


def rows(graph: Graph, name: str) -> list[Row]:
    """The rows of a convention bound to the model, without rows for weights that this model lacks.

    Raises:
        SpecError: a row names an undeclared weight, a weight has two names or none, a layout is not a permutation of its
            weight's axes, or a placeholder has no axis.
    """
    table = convention(graph, name)
    where = f"architecture {graph.architecture.id}: conventions.{name}"
    index_axes = {axis.index: word for word, axis in graph.axes.items() if axis.index}
    declared = _Declared.of(graph)
    found: list[Row] = []
    named: set[tuple[str, str]] = set()
    unprefixed = not is_met(table.prefix_when, {**graph.architecture.flags, **graph.model.flags})
    for full, held, only_in in _entries(graph, name):
        text = full.removeprefix(table.prefix) if unprefixed else full
        holds = holding(held)
        if full not in table.inherited and (unknown := declared.unknown(holds.weights)):
            raise SpecError(f"{where}: {text!r} contains {', '.join(unknown)}, which no component declares")
        if only_in is not None:
            nodes = [weight.partition(".")[0] for weight in holds.weights]
            if not declared.nodes_of(only_in).issuperset(nodes):
                raise SpecError(f"{where}: {text!r}: in = {only_in!r}: no such block has {', '.join(nodes)}")
        weights = [
            weight
            for weight in (graph.weights.get(name) for name in holds.weights)
            if weight is not None and (only_in is None or (weight.id, only_in) in declared.locations)
        ]
        if not weights:
            continue
        if len(weights) != len(holds.weights):
            raise SpecError(f"{where}: {text!r} packs several weights, and this model has only some of them")
        for weight in weights:
            places = {(weight.id, block) for block in declared.blocks[weight.id] if only_in in (None, block)}
            if places & named:
                raise SpecError(f"{where}: {weight.id} has two names")
            named |= places
        found.append(_row(graph, where, text, holds, tuple(weights), only_in, index_axes))
    if missing := {weight for weight, _ in declared.locations - named}:
        raise SpecError(f"{where}: no name for {', '.join(sorted(missing))}")
    _refuse_shared_names(found, where)
    return found


def _entries(graph: Graph, name: str) -> Iterator[tuple[str, str, str | None]]:
    """Name, what the tensor contains, and the block it is in, for every row of a convention and of those it is `like`.

    A weight that a row names is left out of the conventions that this one is like.

    Raises:
        SpecError: conventions are like each other in a circle.
    """
    taken: set[str] = set()
    seen: list[str] = []
    while name:
        if name in seen:
            raise SpecError(
                f"architecture {graph.architecture.id}: conventions.{seen[0]}: {' is like '.join((*seen, name))}"
            )
        seen.append(name)
        table = convention(graph, name)
        own: set[str] = set()
        for full, entry in table.tensors.items():
            holds, block = (entry.holds, entry.block) if isinstance(entry, spec.Row) else (entry, None)
            for held in [holds] if isinstance(holds, str) else holds:
                weights = holding(held).weights
                if taken.isdisjoint(weights):
                    own.update(weights)
                    yield full, held, block
        taken |= own
        name = table.like or ""


@dataclass(frozen=True, slots=True)
class _Declared:
    """The weights that an architecture's nodes declare, and where this model has them.

    Attributes:
        known: the ids of all nodes, absent ones included.
        weights: the ids of the weights that the present nodes may have.
        locations: (weight, block) of every present weight.
        blocks: weight -> the blocks that have it.
    """

    architecture: spec.Architecture
    known: frozenset[str]
    bound: frozenset[str]
    weights: frozenset[str]
    locations: frozenset[tuple[str, str]]
    blocks: dict[str, list[str]]

    @staticmethod
    def of(graph: Graph) -> _Declared:
        architecture = graph.architecture
        known = {part.node.id for part in architecture.graph if part.node is not None}
        known |= {node.id for block in architecture.blocks.values() for node in block}
        here = [(block, node) for block in graph.blocks for node in block.nodes]
        locations = [(weight.id, block.id) for block, node in here for weight in node.weights]
        blocks: dict[str, list[str]] = {}
        for weight, block_id in locations:
            blocks.setdefault(weight, []).append(block_id)
        return _Declared(
            architecture,
            frozenset(known),
            frozenset(node.id for _, node in here),
            frozenset(weight for _, node in here for weight in node.declared),
            frozenset(locations),
            blocks,
        )

    def unknown(self, weights: Sequence[str]) -> list[str]:
        """Those that no component declares. Of an absent node it is not known."""
        nodes = [weight.partition(".")[0] for weight in weights]
        return [
            weight
            for weight, node in zip(weights, nodes, strict=True)
            if node not in self.known or (node in self.bound and weight not in self.weights)
        ]

    def nodes_of(self, block: str) -> set[str]:
        variant = self.architecture.variants.get(block)
        return {node.id for node in self.architecture.blocks.get(variant.of if variant else block, [])}


def _refuse_shared_names(found: Sequence[Row], where: str) -> None:
    """Refuse a name for two weights in one layer.

    Raises:
        SpecError: naming both.
    """
    seen: dict[str, list[Row]] = {}
    for row in found:
        for other in seen.setdefault(row.template.text, []):
            layers = set(row.layers[1] if row.layers else ()), set(other.layers[1] if other.layers else ())
            if not row.layers or layers[0] & layers[1]:
                raise SpecError(
                    f"{where}: {row.template.text!r} is the name of {other.weights[0].id} and of {row.weights[0].id} "
                    "in the same layer"
                )
        seen[row.template.text].append(row)


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
            if only_in in (None, block.id) and any(weight in node.weights for node in block.nodes)
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
        raise SpecError(f"{where}: {text!r} packs weights of different layers")
    layer_word = next(
        (part.index for part in graph.parts if part.id == stack and stack and hasattr(part, "index")), None
    )
    for word in template.placeholders:
        if word not in index_axes:
            raise SpecError(f"{where}: {text!r}: no axis has the index {{{word}}}")
    if layer_word is not None and layer_word not in template.placeholders:
        raise SpecError(
            f"{where}: {text!r}: {weights[0].id} is in every layer of a stack, expected the placeholder {{{layer_word}}}"
        )
    gone = {index_axes[word]: word for word in template.placeholders if word != layer_word}
    for axis in gone:
        if any(axis not in atoms(weight.shape) for weight in weights):
            raise SpecError(f"{where}: {text!r}: {axis} is not an axis of {weights[0].id}")
    layouts = tuple(_layout(graph, where, text, holds, weight, set(gone)) for weight in weights)
    sizes = [[shapes.size(group, graph.dims) for group in layout] for layout in layouts]
    shape = sizes[0]
    along = holds.packed_along
    if along is not None:
        shape = [sum(size[i] for size in sizes) if i == along else n for i, n in enumerate(sizes[0])]
    indices = tuple((word, graph.dims[axis]) for axis, word in gone.items())
    names = math.prod(count for _, count in indices) * (len(layers[0]) if layer_word else 1)
    if names > MOST_NAMES:
        raise SpecError(f"{where}: {text!r} gives {names:,} tensors; the limit is {MOST_NAMES:,}")
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


def _layout(graph: Graph, where: str, text: str, holds: Holding, weight: Weight, gone: set[str]) -> Shape:
    """The layout of a weight in its stored tensor, with `*` replaced by the remaining axes."""
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
    layout = tuple(
        tuple(itertools.chain.from_iterable(rest if axis == REST else (axis,) for axis in group))
        for group in holds.layout
    )
    if sorted(atoms(layout)) != sorted(flat):
        raise SpecError(
            f"{where}: {text!r}: ({shapes.render(holds.layout)}) is not a permutation of ({shapes.render(own)})"
        )
    return layout


def expected(graph: Graph, name: str) -> Iterator[Tensor]:
    """Every tensor that a checkpoint of this model must contain in a convention, in table order, then by layer.

    The second name of a tied matrix is left out unless the convention stores both.
    """
    stores_tied = convention(graph, name).stores_tied
    for row in rows(graph, name):
        if row.tied_to is not None and not stores_tied:
            continue
        word = row.layers[0] if row.layers else ""
        for full, indices in row.names():
            yield Tensor(full, row.shape, row, indices.get(word))
