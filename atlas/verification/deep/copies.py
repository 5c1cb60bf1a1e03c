"""Stored tensors that should be equal: a tied matrix and its copy, and what every model-parallel file holds whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.verification.comparison import Comparison
from atlas.verification.share_joining import is_repeated

Place = tuple[str, Tensor]
"""A file, and a tensor in it."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A tied matrix that is stored twice.

    Attributes:
        copy, original: their declared names.
        redundant: whether the copy need not be stored; some conventions require it.
        places: copy and original; one pair for each model-parallel file.
    """

    copy: str
    original: str
    redundant: bool
    places: tuple[tuple[Place, Place], ...]

    @property
    def dtypes(self) -> tuple[str, str]:
        """The copy's dtype and the original's."""
        (_, copy), (_, original) = self.places[0]
        return copy.dtype, original.dtype


def ties(comparison: Comparison) -> Iterator[Tie]:
    """Tied matrices that are stored twice, in the declared shape, and in the same files."""
    whole = {name for name, tensor in comparison.found.items() if tensor.shape == _shape(comparison, name)}
    originals = {row.weights[0].id: name for name, row in comparison.needed.items() if row.tied_to is None}
    copies = [name for name, row in comparison.needed.items() if row.tied_to is not None]
    for name in (*comparison.copies, *copies):
        tied_to = comparison.row(name).tied_to
        original = originals.get(tied_to.id) if tied_to else None
        if original is not None and {name, original} <= whole:
            stored, other = comparison.found[name].name, comparison.found[original].name
            if places := tuple(_places(comparison.inventory, stored, other)):
                yield Tie(name, original, name in comparison.copies, places)


def _shape(comparison: Comparison, name: str) -> tuple[int, ...] | None:
    row = comparison.needed.get(name) or comparison.naming.table.tied.get(name)
    return row.shape if row else None


def _places(inventory: Inventory, copy: str, original: str) -> Iterator[tuple[Place, Place]]:
    if not inventory.shares:
        a, b = inventory.tensors[copy], inventory.tensors[original]
        a_file, b_file = inventory.file_of(a), inventory.file_of(b)
        if a_file is not None and b_file is not None:
            yield (a_file, a), (b_file, b)
        return
    shares = [(file, header.tensors) for file, header in inventory.headers.items() if copy in header.tensors]
    if all(original in tensors and tensors[copy].shape == tensors[original].shape for _, tensors in shares):
        yield from (((file, tensors[copy]), (file, tensors[original])) for file, tensors in shares)
    # else one is divided by rows, the other by columns, and no file holds the same part of both


@dataclass(frozen=True, slots=True)
class Replica:
    """A device's copy of a vector, and the first device's.

    Attributes:
        name: the declared name.
    """

    name: str
    copy: Place
    original: Place


def replicas(comparison: Comparison) -> Iterator[Replica]:
    """Vectors along the residual stream, which every model-parallel file holds whole, in the same shape and dtype."""
    if not comparison.inventory.shares:
        return
    headers = comparison.inventory.headers
    for name, row in comparison.needed.items():
        if name not in comparison.found or not is_repeated(row):
            continue
        stored = comparison.found[name].name
        places = [
            (file, header.tensors[stored]) for file, header in headers.items() if stored in header.tensors
        ]
        for copy in places[1:]:
            if _kind(copy) == _kind(places[0]):
                yield Replica(name, copy, places[0])


def _kind(place: Place) -> tuple[str, tuple[int, ...]]:
    return place[1].dtype, place[1].shape
