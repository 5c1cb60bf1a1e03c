"""The rows of a convention bound to a model: which weights a stored tensor contains, its shape, and its layers.

The rows are checked against the bound graph: each weight has exactly one name, and each name an existing weight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from atlas.errors import SpecError
from atlas.grammar import shapes
from atlas.grammar.names import Holding, Template, holding
from atlas.grammar.shapes import REST, Shape, atoms
from atlas.graph.conventions import convention, entries, shortened
from atlas.graph.declared import Declared
from atlas.graph.graph import Graph, Weight

MOST_NAMES = 1_000_000
"""Most names of a convention. The largest published models have fewer than 100,000."""


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

    @property
    def count(self) -> int:
        """How many tensors the row stands for."""
        return math.prod(count for _, count in self.indices) * (len(self.layers[1]) if self.layers else 1)

    def _words(self) -> list[str]:
        """The placeholders in the order of `_numbers`: the layer first."""
        return [*([self.layers[0]] if self.layers else []), *(word for word, _ in self.indices)]

    def _numbers(self) -> Iterator[tuple[int, ...]]:
        counts: list[Sequence[int]] = [self.layers[1]] if self.layers else []
        return itertools.product(*counts, *(range(count) for _, count in self.indices))

    def _expand(self) -> Callable[[tuple[int, ...]], str]:
        """Numbers -> the name; made once, since a mixture of experts has tens of thousands of names."""
        words, placed = self._words(), self.template.placeholders
        text = self.template.text.replace("%", "%%").format_map(dict.fromkeys(placed, "%d"))
        if list(placed) == words:
            return lambda numbers: text % numbers
        order = [words.index(word) for word in placed]
        return lambda numbers: text % tuple(numbers[i] for i in order)

    def all_names(self) -> list[str]:
        """Every name, in the order of layers."""
        return list(map(self._expand(), self._numbers()))

    def names(self) -> Iterator[tuple[str, dict[str, int]]]:
        """Every name with its indices, in the order of layers."""
        words, expand = self._words(), self._expand()
        for numbers in self._numbers():
            yield expand(numbers), dict(zip(words, numbers, strict=True))


def rows(graph: Graph, name: str) -> list[Row]:
    """The rows of a convention bound to the model, without rows for weights that this model lacks.

    Raises:
        SpecError: a row names an undeclared weight, a weight has two names or none, a layout is not a permutation of its
            weight's axes, or a placeholder has no axis.
    """
    known: list[Row] | None = graph.rows.get(name)
    if known is None:
        known = graph.rows[name] = _rows(graph, name)
    return list(known)


def _rows(graph: Graph, name: str) -> list[Row]:
    table = convention(graph, name)
    where = f"architecture {graph.architecture.id}: conventions.{name}"
    index_axes = {axis.index: word for word, axis in graph.axes.items() if axis.index}
    declared = Declared.of(graph)
    found: list[Row] = []
    named: set[tuple[str, str]] = set()
    for entry in entries(table):
        text, only_in = shortened(entry.name, table, graph), entry.block
        holds = holding(entry.holds)
        if not entry.inherited:
            if unknown := declared.unknown(holds.weights):
                raise SpecError(
                    f"{where}: {text!r} contains {', '.join(unknown)}, which no component declares"
                )
            if only_in is not None and (strange := declared.not_in(only_in, holds.weights)):
                raise SpecError(
                    f"{where}: {text!r}: in = {only_in!r}: no such block has {', '.join(strange)}"
                )
        weights = [
            weight
            for weight in (graph.weights.get(name) for name in holds.weights)
            if weight is not None and (only_in is None or (weight.id, only_in) in declared.locations)
        ]
        if not weights or (entry.inherited and len(weights) != len(holds.weights)):
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
    if (names := sum(row.count for row in found)) > MOST_NAMES:
        raise SpecError(f"{where}: {names:,} tensors; the limit is {MOST_NAMES:,}")
    return found


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
    places = [
        [
            block
            for block in graph.blocks
            if only_in in (None, block.id) and any(weight in node.weights for node in block.nodes)
        ]
        for weight in weights
    ]
    stack = places[0][0].stack
    layers = [
        each[0].layers or () if len(each) == 1 else sorted(i for block in each for i in block.layers or ())
        for each in places
    ]
    if any(each[0].stack != stack for each in places) or any(
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
