"""Model-parallel files: over how many devices the matrices are divided, and which files hold these shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from atlas.graph.tensors import Row, convention
from atlas.verification.comparison import Comparison
from atlas.verification.share_joining import cut_along

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices over which a checkpoint's matrices are divided.

    Attributes:
        count: the number that most shares' shapes give; without a majority, the number of files there should be.
        files: one for each device; if there are more files than devices, the first that fit.
        surplus: the other files.
    """

    count: int
    files: tuple[str, ...]
    surplus: tuple[str, ...]


def devices(comparison: Comparison) -> Devices:
    """The number of devices, from the shapes of the shares."""
    inventory = comparison.inventory
    files = len(inventory.headers) + len(inventory.unread) + len(inventory.absent)
    rows = {id(row): row for row in comparison.needed.values()}
    whole = {key for key, row in rows.items() if along(comparison, row) == ()}
    cut = {name: row.shape for name, row in comparison.needed.items() if id(row) not in whole}
    votes = {file: Counter[int]() for file in inventory.headers}
    for file, header in inventory.headers.items():
        for stored, tensor in header.tensors.items():
            wanted = cut.get(comparison.ours(stored))
            if wanted is not None:
                votes[file][over(tensor.shape, wanted)] += 1
    every = sum(votes.values(), Counter[int]())
    count = max(every, key=lambda count: (every[count], count == files, count), default=0)
    if count <= 1 or every[count] * 2 < every.total():
        return Devices(files, tuple(inventory.headers), ())
    fitting = sorted(votes, key=lambda file: votes[file][count] * 2 <= votes[file].total())
    kept = {*fitting[:count]}
    return Devices(
        count,
        tuple(file for file in inventory.headers if file in kept),
        tuple(file for file in inventory.headers if file not in kept),
    )


def along(comparison: Comparison, row: Row) -> tuple[int, ...] | None:
    """The dimensions a tensor may be divided along; None if the convention does not state it."""
    return cut_along(row, convention(comparison.graph, comparison.naming.table.convention))


@lru_cache(1024)
def share(wanted: Shape, d: int, count: int) -> Shape | None:
    """A device's share of a tensor divided along a dimension; None if the size does not divide."""
    size, rest = divmod(wanted[d], count)
    return None if rest else (*wanted[:d], size, *wanted[d + 1 :])


@lru_cache(1024)  # the layers are alike
def over(found: Shape, wanted: Shape) -> int:
    """Over how many devices a tensor was divided, along any one dimension: 1 if it is whole, 0 if it is no share."""
    differing = [d for d, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b]
    if len(found) != len(wanted) or len(differing) > 1:
        return 0
    if not differing:
        return 1
    d = differing[0]
    return wanted[d] // found[d] if found[d] and wanted[d] % found[d] == 0 else 0


def pieces(comparison: Comparison, files: tuple[str, ...]) -> dict[str, Mapping[str, Shape]]:
    """Declared name -> file -> shape of its share, for every tensor that is in all files with tensors."""
    headers = [(file, comparison.inventory.headers[file].tensors) for file in files]
    holding = [(file, tensors) for file, tensors in headers if tensors]
    found: dict[str, Mapping[str, Shape]] = {}
    for name in comparison.needed:
        if name in comparison.found:
            stored = comparison.found[name].name
            shapes = {file: tensors[stored].shape for file, tensors in holding if stored in tensors}
            if len(shapes) == len(holding):
                found[name] = shapes
    return found
