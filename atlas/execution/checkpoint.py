"""Weights from a checkpoint: each block's tensors mapped or read when it runs, and let go after it.

What is resident is one block, and the system's own file cache serves the next token's pass. A tensor that is stored in
another dtype than that of the run is converted as it is read. For another device a block's tensors are copied there when it
runs. Of a table that is only looked up in, such as the embedding, the rows that are taken are read and no others.
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
from atlas.execution import mapped
from atlas.execution.align import View
from atlas.execution.devices import FLOATS
from atlas.execution.files import Piece, stored
from atlas.execution.layouts import Order, is_as_declared, kept_order, unpacking
from atlas.execution.reading import Reader, Rows
from atlas.graph import tensors
from atlas.graph.graph import Block, Graph


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a weight of one layer lies.

    Attributes:
        name: of the stored tensor.
        pieces: of that tensor, in one file or in several devices' files.
        along: the dimension in which they lie side by side.
        view: what makes the weight of the tensor.
        looked_up: every step that reads the weight takes rows of it, which lie in the file as they are declared.
    """

    name: str
    pieces: list[Piece]
    along: int
    view: View
    looked_up: bool


class Checkpoint:
    """A folder's weights; the convention is the one whose names are there.

    Attributes:
        dtype: the one given, else the one that most numbers are stored in.
        orders: as `atlas.execution.walk.Weights` has it.
        source: the path.
        notes: what is done to the stored numbers, and what is left out.

    Raises:
        CheckpointError: a file cannot be read, a tensor is missing or of another shape, or its dtype is no float.
        NotDescribed: a tensor holds its weights in a way that cannot be run yet.
    """

    def __init__(
        self, graph: Graph, path: Path, *, device: torch.device, dtype: torch.dtype | None = None
    ) -> None:
        self._device = device
        self._reader = Reader(for_cpu=device.type == "cpu")
        self.source = str(path)
        found = stored(path)
        self.orders: dict[str, Order] = {}
        self._places = self._find(graph, found, path)
        kinds = Counter[str]()
        for place in self._places.values():
            for piece in place.pieces:
                kinds[piece.dtype] += piece.size
        if odd := sorted(kinds.keys() - FLOATS.keys()):
            raise CheckpointError(f"{path}: tensors in {', '.join(odd)}, in which no model can be run yet")
        self.dtype = dtype or FLOATS[kinds.most_common(1)[0][0]]
        notes = []
        if any(FLOATS[code] != self.dtype for code in kinds):
            notes.append(f"the weights are stored in {' and '.join(sorted(kinds))}, and converted when read")
        if unused := sorted(found.keys() - {place.name for place in self._places.values()}):
            more = f" and {len(unused) - 1:,} more" if len(unused) > 1 else ""
            notes.append(f"the model has no use for the stored tensor {unused[0]}{more}")
        self.notes = tuple(notes)

    def _find(
        self, graph: Graph, found: Mapping[str, list[Piece]], path: Path
    ) -> dict[tuple[str, int | None], _Place]:
        """(weight, layer) -> where it lies; a tied weight that is not stored lies where its other does."""
        convention = _convention(graph, found, path)
        views: dict[str, View] = {}
        only_taken = _only_taken(graph)
        as_declared: dict[str, bool] = {}
        for row in tensors.rows(graph, convention):
            if row.indices:
                raise NotDescribed(f"{row.template.text}: a tensor for each expert cannot be run yet")
            for number, (weight, lies) in enumerate(zip(row.weights, row.layouts, strict=True)):
                self.orders[weight.id] = kept_order(graph, weight, lies)
                views[weight.id] = unpacking(row, number, graph, self.orders[weight.id])
                as_declared[weight.id] = is_as_declared(row, number)
        places: dict[tuple[str, int | None], _Place] = {}
        for tensor in tensors.expected(graph, convention):
            pieces, along = _pieces(tensor, found, path)
            for weight in tensor.row.weights:
                looked_up = weight.id in only_taken and as_declared[weight.id] and len(pieces) == 1
                place = _Place(tensor.name, pieces, along, views[weight.id], looked_up)
                places[weight.id, tensor.layer] = place
        for weight in graph.weights.values():
            other = graph.tied_to(weight)
            if other is not None:
                place = replace(places[other.id, None], looked_up=False)
                places.setdefault((weight.id, None), place)
        return places

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """As `atlas.execution.walk.Weights` has it.

        Raises:
            CheckpointError: a file can no longer be read, or is not what it was.
            MemoryError: there is no room for the block.
        """
        places = {
            weight.id: self._places[weight.id, layer] for node in block.nodes for weight in node.weights
        }
        self._reader.begin()
        taken = {True: [0], False: [0]}
        for place in places.values():
            if not place.looked_up:
                taken[self._keeps(place)].append(self._reader.room(place.pieces))
        # Tensors that are copied once more are read one over the other.
        self._reader.make_room(sum(taken[True]) + max(taken[False]))
        return {id: self._weight(place) for id, place in places.items()}

    def done(self) -> None:
        """As `atlas.execution.walk.Weights` has it."""
        mapped.require_all()

    def _keeps(self, place: _Place) -> bool:
        """Whether the weight is the tensor as it is read, and no copy of it."""
        (piece, *more) = place.pieces
        return not more and self._device.type == "cpu" and FLOATS[piece.dtype] == self.dtype

    def _weight(self, place: _Place) -> Tensor:
        if place.looked_up:
            return cast(Tensor, Rows(place.pieces[0], self._device, self.dtype))
        pieces = [self._reader.read(piece) for piece in place.pieces]
        whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces, place.along)
        weight = place.view(whole).to(self._device, self.dtype)
        if not self._keeps(place):
            self._reader.read_over(place.pieces)
        return weight


def _only_taken(graph: Graph) -> set[str]:
    """The weights that every step which reads them takes rows of, in the run's own dtype."""
    taken: set[str] = set()
    otherwise: set[str] = set()
    for block in graph.blocks:
        for node in block.nodes:
            for step in node.steps:
                rows = step.op == "take" and step.computed_in == "A" and step.of[0].weight is None
                (taken if rows else otherwise).update(weight.id for weight in step.weights)
    return {id for id in taken - otherwise if len(graph.weights[id].shape) == 2}


def _convention(graph: Graph, found: Mapping[str, list[Piece]], path: Path) -> str:
    """The convention most of whose names are there."""
    # A configuration can claim any number of layers: no more names are tried than could be there.
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
            f"{path} holds none of the tensors of {graph.model.id}: "
            + (f"its first is {min(found)!r}" if found else "it holds none at all"),
            hint="`atlas verify` says what is wrong with the names",
            code="missing",
        )
    return best


def _pieces(tensor: tensors.Tensor, found: Mapping[str, list[Piece]], path: Path) -> tuple[list[Piece], int]:
    """The pieces a tensor is made of, and along which dimension.

    Meta's model-parallel files divide a matrix by its rows or by its columns, a share for each device, and repeat vectors
    whole in each.
    """
    expected = list(tensor.shape)
    pieces = found.get(tensor.name)
    if pieces is None:
        raise CheckpointError(
            f"{path}: the tensor {tensor.name} is missing, expected with shape {expected}",
            hint="`atlas verify` lists all that is wrong",
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
        hint="`atlas verify` lists all that is wrong",
        code="shape",
    )
