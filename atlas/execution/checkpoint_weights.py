"""Weights from a checkpoint: each block's tensors are mapped or read when the block runs, and freed after it.

One block is in memory at a time; the next token's pass is served from the system's page cache. A tensor that is stored in
another dtype than the run's is converted when it is read. For another device a block's tensors are copied there when it
runs. Of a table that is only looked up, such as the embedding, only the rows that are looked up are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from atlas.errors import CheckpointError, NotDescribed
from atlas.execution import memory_map
from atlas.execution.devices import CODES, FLOATS
from atlas.execution.lazy_experts import LazyExperts
from atlas.execution.named_axes import View
from atlas.execution.tensor_reader import LazyRows, TensorReader, same_values
from atlas.execution.weight_files import Piece, find_pieces
from atlas.execution.weight_layout import AxisOrder, is_as_declared, rotated_axis_order, unpacking
from atlas.graph import conventions, tensors
from atlas.graph.graph import Block, Graph, Weight


@dataclass(frozen=True, slots=True)
class _Place:
    """The stored tensor of a weight in one layer.

    Attributes:
        name: of the stored tensor.
        pieces: of that tensor, in one file or in several model-parallel files.
        along: the dimension along which they are concatenated.
        view: turns the tensor into the weight.
        looked_up: every step that reads the weight looks up rows of it, and the rows are stored as declared.
        experts: for weights that are selected for each token: the pieces of each expert, which are read when it is chosen.
        stacked: for weights that are stored in a tensor for each index of their first axis: these tensors' pieces.
    """

    name: str
    pieces: list[Piece]
    along: int
    view: View
    looked_up: bool
    experts: tuple[Piece, ...] = ()
    stacked: tuple[Piece, ...] = ()


class CheckpointWeights:
    """A folder's weights, in the naming convention that most of its tensors have.

    Attributes:
        dtype: the one given, else the one that most elements are stored in.
        orders: see `atlas.execution.weights.Weights`.
        source: the path.
        notes: how the stored values are converted, and which tensors are not used.
        warnings: what contradicts the configuration.

    Raises:
        CheckpointError: a file cannot be read, a tensor is missing or has another shape, or its dtype is not a float.
        NotDescribed: a tensor packs its weights in a way that cannot be run yet.
    """

    def __init__(
        self, graph: Graph, path: Path, *, device: torch.device, dtype: torch.dtype | None = None
    ) -> None:
        self._device = device
        self._reader = TensorReader(for_cpu=device.type == "cpu")
        self.source = str(path)
        found = _of_the_text_part(graph, find_pieces(path))
        self.orders: dict[str, AxisOrder] = {}
        self.warnings: tuple[str, ...] = ()
        self._places = self._find(graph, found, path)
        kinds = Counter[str]()
        for place in self._places.values():
            for piece in place.pieces:
                kinds[piece.dtype] += piece.elements
        if odd := sorted(kinds.keys() - FLOATS.keys()):
            raise CheckpointError(f"{path}: tensors in {', '.join(odd)}, which cannot be run yet")
        self.dtype = dtype or FLOATS[kinds.most_common(1)[0][0]]
        notes = []
        if any(FLOATS[code] != self.dtype for code in kinds):
            notes.append(
                f"the weights are stored in {' and '.join(sorted(kinds))}, and converted to {CODES[self.dtype]} when read"
            )
        if unused := sorted(found.keys() - {place.name for place in self._places.values()}):
            more = f" and {len(unused) - 1:,} more" if len(unused) > 1 else ""
            notes.append(f"the model does not use the stored tensor {unused[0]}{more}")
        self.notes = tuple(notes)

    def _find(
        self, graph: Graph, found: Mapping[str, list[Piece]], path: Path
    ) -> dict[tuple[str, int | None], _Place]:
        """(weight, layer) -> its stored tensor. A tied weight that is not stored uses the other one's."""
        convention = _convention(graph, found, path)
        views: dict[str, View] = {}
        only_looked_up = _only_looked_up(graph)
        as_declared: dict[str, bool] = {}
        selected = selected_weights(graph)
        for row in tensors.rows(graph, convention):
            for number, (weight, layout) in enumerate(zip(row.weights, row.layouts, strict=True)):
                self.orders[weight.id] = rotated_axis_order(graph, weight, layout)
                one_of = selected.get(weight.id) or _indexed_axis(row, weight, graph)
                views[weight.id] = unpacking(row, number, graph, self.orders[weight.id], one_of=one_of)
                as_declared[weight.id] = is_as_declared(row, number)
        places: dict[tuple[str, int | None], _Place] = {}
        # Either of two tied matrices may be the stored one.
        tied = {
            row.tied_to.id: tensors.Tensor(row.template.text, row.shape, row, None)
            for row in tensors.rows(graph, convention)
            if row.tied_to is not None
        }
        for tensor in tensors.expected(graph, convention):
            stored = tensor
            if tensor.name not in found and len(tensor.row.weights) == 1:
                other = tied.get(tensor.row.weights[0].id)
                stored = other if other is not None and other.name in found else tensor
            pieces, along = _pieces(stored, found, path)
            for weight, source in zip(tensor.row.weights, stored.row.weights, strict=True):
                if weight.id in selected:
                    before = places.get((weight.id, tensor.layer))
                    each = (
                        *(before.experts if before else ()),
                        *_by_expert(tensor, pieces, selected[weight.id], graph),
                    )
                    places[weight.id, tensor.layer] = _Place(
                        tensor.name,
                        [*(before.pieces if before else []), *pieces],
                        0,
                        views[weight.id],
                        False,
                        each,
                    )
                    continue
                if tensor.row.indices:
                    before = places.get((weight.id, tensor.layer))
                    each = (*(before.stacked if before else ()), *pieces)
                    places[weight.id, tensor.layer] = _Place(
                        tensor.name, [*each], 0, views[weight.id], False, stacked=each
                    )
                    continue
                looked_up = weight.id in only_looked_up and as_declared[source.id] and len(pieces) == 1
                place = _Place(stored.name, pieces, along, views[source.id], looked_up)
                places[weight.id, tensor.layer] = place
        for id, tensor in tied.items():
            (weight,) = tensor.row.weights
            if tensor.name in found:
                pieces, along = _pieces(tensor, found, path)
                places[weight.id, None] = _Place(tensor.name, pieces, along, views[weight.id], False)
                self._compare_tied(places[id, None], places[weight.id, None], path)
            else:
                places[weight.id, None] = replace(places[id, None], looked_up=False)
        return places

    def _compare_tied(self, source: _Place, tied: _Place, path: Path) -> None:
        """Warn if two tied matrices are both stored, with different values."""
        if source.name != tied.name and not same_values(source.pieces, tied.pieces):
            self.warnings = (
                *self.warnings,
                f"{path}: the configuration ties {tied.name} to {source.name}, but both are stored, with different values; "
                f"the stored {tied.name} was used, as transformers 5 does (earlier versions use {source.name})",
            )

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """See `atlas.execution.weights.Weights`.

        Raises:
            CheckpointError: a file can no longer be read, or has changed.
            MemoryError: there is not enough memory for the block.
        """
        places = {
            weight.id: self._places[weight.id, layer] for node in block.nodes for weight in node.weights
        }
        self._reader.begin()
        sizes = {
            True: [0],
            False: [0],
        }  # of weights that stay in the buffer, and of those that are copied once more
        for place in places.values():
            if not place.looked_up and not place.experts:
                sizes[self._is_view(place)].append(self._reader.room(place.pieces))
        # Tensors that are copied once more are all read into the same space.
        self._reader.make_room(sum(sizes[True]) + max(sizes[False]))
        return {id: self._weight(place) for id, place in places.items()}

    def done(self) -> None:
        """See `atlas.execution.weights.Weights`."""
        memory_map.require_unchanged()

    def _is_view(self, place: _Place) -> bool:
        """Whether the weight is a view of the tensor as it was read, not a copy."""
        (piece, *more) = place.pieces
        return not more and self._device.type == "cpu" and FLOATS[piece.dtype] == self.dtype

    def _weight(self, place: _Place) -> Tensor:
        if place.experts:
            return cast(Tensor, LazyExperts(place.experts, place.view, self._device, self.dtype))
        if place.looked_up:
            return cast(Tensor, LazyRows(place.pieces[0], self._device, self.dtype))
        if place.stacked:
            each = [place.view(self._reader.read(piece)) for piece in place.stacked]
            weight = torch.stack(each).to(self._device, self.dtype)
            self._reader.read_over(place.stacked)
            return weight
        pieces = [self._reader.read(piece) for piece in place.pieces]
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces, place.along)
        weight = place.view(whole).to(self._device, self.dtype)
        if not self._is_view(place):
            self._reader.read_over(place.pieces)
        return weight


def _of_the_text_part(graph: Graph, found: Mapping[str, list[Piece]]) -> Mapping[str, list[Piece]]:
    """The stored tensors by the names of the language model alone, if it is a part of a multimodal model."""
    if not graph.model.text_part:
        return found
    prefixes = [
        each.replace
        for name in graph.architecture.conventions
        for each in tensors.convention(graph, name).within
    ]
    renamed = [{name: conventions.inside(name, each) for name in found} for each in prefixes]
    best = max(renamed, key=lambda names: sum(other is not None for other in names.values()), default={})
    return {best.get(name) or name: pieces for name, pieces in found.items()}


def _only_looked_up(graph: Graph) -> set[str]:
    """The weights of which every step only looks up rows, in the run's own dtype."""
    looked_up: set[str] = set()
    otherwise: set[str] = set()
    for block in graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                rows = step.op == "take" and step.computed_in == "A" and step.of[0].weight is None
                (looked_up if rows else otherwise).update(weight.id for weight in step.weights)
    return {id for id in looked_up - otherwise if len(graph.weights[id].shape) == 2}


def selected_weights(graph: Graph) -> dict[str, str]:
    """Weight -> the axis along which it is selected for each token: routed experts."""
    return {
        operand.weight.id: operand.instead_of
        for block in graph.blocks
        for node in block.nodes
        for step in node.steps
        for operand in step.of
        if operand.weight is not None and operand.instead_of is not None
    }


def _indexed_axis(row: tensors.Row, weight: Weight, graph: Graph) -> str | None:
    """The axis whose index is in a tensor's name; None if there is none.

    Raises:
        NotDescribed: it is not the weight's first one.
    """
    words = {word for word, _ in row.indices}
    axes = [name for name, axis in graph.axes.items() if axis.index in words]
    if not axes:
        return None
    if len(axes) > 1 or weight.shape[0] != (axes[0],):
        raise NotDescribed(f"{row.template.text}: tensors for each {' and '.join(axes)} cannot be run yet")
    return axes[0]


def _by_expert(tensor: tensors.Tensor, pieces: list[Piece], axis: str, graph: Graph) -> list[Piece]:
    """The piece of each expert in a stored tensor: all of it if it is one expert's, else an equal share of its bytes.

    Raises:
        NotDescribed: the experts of the tensor do not follow each other in the file.
    """
    if tensor.row.indices:
        return pieces
    if len(pieces) != 1 or any(layout[0] != (axis,) for layout in tensor.row.layouts):
        raise NotDescribed(
            f"{tensor.name}: experts that do not follow each other in the file cannot be run yet"
        )
    (piece,) = pieces
    count = graph.dims[axis]
    each = piece.bytes // count
    return [
        replace(piece, begin=piece.begin + i * each, bytes=each, shape=(1, *piece.shape[1:]))
        for i in range(count)
    ]


def _convention(graph: Graph, found: Mapping[str, list[Piece]], path: Path) -> str:
    """The naming convention of which the most names are stored."""
    # A configuration may state any number of layers: no more names are tried than could be stored.
    most = len(found) + 1
    counts = {
        name: sum(
            full in found
            for row in tensors.rows(graph, name)
            if row.tied_to is None or tensors.convention(graph, name).stores_tied
            for full, _ in islice(row.names(), most)
        )
        for name in graph.architecture.conventions
    }
    best = max(counts, key=lambda name: counts[name])
    if not counts[best]:
        raise CheckpointError(
            f"{path} has none of the tensors of {graph.model.id}: "
            + (f"its first is {min(found)!r}" if found else "it has no tensors"),
            hint="`atlas verify` reports what is wrong with the names",
            code="missing",
        )
    return best


def _pieces(tensor: tensors.Tensor, found: Mapping[str, list[Piece]], path: Path) -> tuple[list[Piece], int]:
    """The pieces of a tensor, and the dimension along which they are concatenated.

    Meta's model-parallel files split a matrix by its rows or its columns, one share per device, and repeat every vector
    in each file.
    """
    expected = list(tensor.shape)
    pieces = found.get(tensor.name)
    if pieces is None:
        raise CheckpointError(
            f"{path}: the tensor {tensor.name} is missing, expected with shape {expected}",
            hint="`atlas verify` lists everything that is wrong",
            code="missing",
        )
    if all(piece.shape == tensor.shape for piece in pieces):
        return pieces[:1], 0
    for along in range(len(expected) if len(pieces) > 1 else 0):
        rest = [*expected[:along], *expected[along + 1 :]]
        if sum(piece.shape[along] for piece in pieces) == expected[along] and all(
            [*piece.shape[:along], *piece.shape[along + 1 :]] == rest for piece in pieces
        ):
            return pieces, along
    shapes = " and ".join(sorted({str(list(piece.shape)) for piece in pieces}))
    raise CheckpointError(
        f"{pieces[0].file.path}: {tensor.name} is {shapes}, expected {expected}",
        hint="`atlas verify` lists everything that is wrong",
        code="shape",
    )
