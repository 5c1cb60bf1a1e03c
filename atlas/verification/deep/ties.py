"""Which stored tensors should be equal: a matrix that the model ties, and its copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.verification.case import Case

Place = tuple[str, Tensor]
"""A file, and a tensor in it."""


@dataclass(frozen=True, slots=True)
class Tie:
    """A tied matrix that is stored twice.

    Attributes:
        copy, original: as they are declared; the files may have a prefix before that.
        redundant: the copy need not be there; some conventions store it all the same.
        places: where the two lie; of Meta's model-parallel files, in each.
    """

    copy: str
    original: str
    redundant: bool
    places: tuple[tuple[Place, Place], ...]

    @property
    def dtypes(self) -> tuple[str, str]:
        """That of the copy and that of the original."""
        (_, copy), (_, original) = self.places[0]
        return copy.dtype, original.dtype


def ties(case: Case) -> Iterator[Tie]:
    """Those of which both are there, in the shape that is declared, and alike in every file."""
    whole = {name for name, tensor in case.found.items() if tensor.shape == _shape(case, name)}
    originals = {row.weights[0].id: name for name, row in case.needed.items() if row.tied_to is None}
    copies = [name for name, row in case.needed.items() if row.tied_to is not None]
    for name in (*case.copies, *copies):
        tied_to = case.row(name).tied_to
        original = originals.get(tied_to.id) if tied_to else None
        if original is not None and {name, original} <= whole:
            stored, other = case.found[name].name, case.found[original].name
            if places := tuple(_places(case.inventory, stored, other)):
                yield Tie(name, original, name in case.copies, places)


def _shape(case: Case, name: str) -> tuple[int, ...] | None:
    row = case.needed.get(name) or case.naming.table.tied.get(name)
    return row.shape if row else None


def _places(inventory: Inventory, copy: str, original: str) -> Iterator[tuple[Place, Place]]:
    if not inventory.shares:
        a, b = inventory.tensors[copy], inventory.tensors[original]
        a_file, b_file = inventory.file_of(a), inventory.file_of(b)
        if a_file is not None and b_file is not None:
            yield (a_file, a), (b_file, b)
        return
    shares = [(file, header.tensors) for file, header in inventory.headers.items() if copy in header.tensors]
    if all(original in held and held[copy].shape == held[original].shape for _, held in shares):
        yield from (((file, held[copy]), (file, held[original])) for file, held in shares)
    # else one is cut by rows, the other by columns, and nothing lies side by side
