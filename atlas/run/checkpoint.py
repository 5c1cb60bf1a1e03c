"""Weights from a checkpoint: each block's tensors mapped into memory when it runs, and let go after it.

safetensors maps a tensor's bytes from the file, so on a CPU nothing is copied unless the dtype changes, what is resident
is one block's pages, and the system's own file cache serves the next token's pass. For another device a block's tensors
are copied there when it runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from atlas import tensors
from atlas.errors import CheckpointError, NotDescribed
from atlas.graph import Block, Graph
from atlas.run.align import View
from atlas.run.devices import FLOATS
from atlas.run.files import Piece, stored
from atlas.run.layouts import Order, kept_order, unpacking


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a weight of one layer lies.

    Attributes:
        name: of the stored tensor.
        pieces: of that tensor, in one file or in several devices' files.
        along: the dimension in which they lie side by side.
        view: what makes the weight of the tensor.
    """

    name: str
    pieces: list[Piece]
    along: int
    view: View


class Checkpoint:
    """A folder's weights; the convention is the one whose names are there.

    Attributes:
        dtype: the one given, else the one that most numbers are stored in.
        orders: as `atlas.run.walk.Weights` has it.
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
        self.source = str(path)
        found = stored(path)
        self.orders: dict[str, Order] = {}
        self._places = self._find(graph, found, path)
        kinds = Counter[str]()
        for place in self._places.values():
            for piece in place.pieces:
                kinds[piece.dtype] += math.prod(piece.shape)
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
        for row in tensors.rows(graph, convention):
            if row.indices:
                raise NotDescribed(f"{row.template.text}: a tensor for each expert cannot be run yet")
            for number, (weight, lies) in enumerate(zip(row.weights, row.layouts, strict=True)):
                self.orders[weight.id] = kept_order(graph, weight, lies)
                views[weight.id] = unpacking(row, number, graph, self.orders[weight.id])
        places: dict[tuple[str, int | None], _Place] = {}
        for tensor in tensors.expected(graph, convention):
            pieces, along = _pieces(tensor, found, path)
            for weight in tensor.row.weights:
                places[weight.id, tensor.layer] = _Place(tensor.name, pieces, along, views[weight.id])
        for weight in graph.weights.values():
            other = graph.tied_to(weight)
            if other is not None:
                places.setdefault((weight.id, None), places[other.id, None])
        return places

    def load(self, block: Block, layer: int | None) -> dict[str, Tensor]:
        """As `atlas.run.walk.Weights` has it.

        Raises:
            CheckpointError: a file can no longer be read.
        """
        files: dict[Path, safe_open] = {}
        loaded: dict[str, Tensor] = {}
        for node in block.nodes:
            for weight in node.weights:
                place = self._places[weight.id, layer]
                pieces = [_read(place.name, piece, files) for piece in place.pieces]
                whole = pieces[0] if len(pieces) == 1 else torch.cat(pieces, place.along)
                loaded[weight.id] = place.view(whole).to(self._device, self.dtype)
        return loaded


def _convention(graph: Graph, found: Mapping[str, list[Piece]], path: Path) -> str:
    """The convention most of whose names are there."""
    counts = {
        name: sum(tensor.name in found for tensor in tensors.expected(graph, name))
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
        f"{pieces[0].file}: {tensor.name} is {shapes}, expected {expected}",
        hint="`atlas verify` lists all that is wrong",
        code="shape",
    )


def _read(name: str, piece: Piece, files: dict[Path, safe_open]) -> Tensor:
    try:
        if piece.file not in files:
            files[piece.file] = safe_open(piece.file, framework="pt")
        tensor: Tensor = files[piece.file].get_tensor(name)  # type: ignore[no-untyped-call]
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{piece.file}: {name} cannot be read: {error}") from None
    return tensor
