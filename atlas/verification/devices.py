"""Meta's model-parallel files as shares: over how many devices the matrices are cut, and which files hold that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from atlas.graph.tensors import Row, convention
from atlas.verification.case import Case
from atlas.verification.joined import cut_along

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """Over how many devices a checkpoint's matrices are cut.

    Attributes:
        count: what most shares say; where no number has most, as many as there should be files.
        files: those that are the devices'; of more than there are devices those that fit, and the first of them.
        surplus: the others.
    """

    count: int
    files: tuple[str, ...]
    surplus: tuple[str, ...]


def devices(case: Case) -> Devices:
    """What the shares themselves say."""
    inventory = case.inventory
    files = len(inventory.headers) + len(inventory.unread) + len(inventory.absent)
    rows = {id(row): row for row in case.needed.values()}
    whole = {key for key, row in rows.items() if along(case, row) == ()}
    cut = {name: row.shape for name, row in case.needed.items() if id(row) not in whole}
    votes = {file: Counter[int]() for file in inventory.headers}
    for file, header in inventory.headers.items():
        for stored, tensor in header.tensors.items():
            wanted = cut.get(case.ours(stored))
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


def along(case: Case, row: Row) -> tuple[int, ...] | None:
    """The dimensions a tensor may be cut along; None where nothing says it."""
    return cut_along(row, convention(case.graph, case.naming.table.convention))


@lru_cache(1024)
def share(wanted: Shape, d: int, count: int) -> Shape | None:
    """A device's share of a tensor cut along a dimension; None where the devices' shares cannot be alike."""
    size, rest = divmod(wanted[d], count)
    return None if rest else (*wanted[:d], size, *wanted[d + 1 :])


@lru_cache(1024)  # the layers are alike
def over(found: Shape, wanted: Shape) -> int:
    """Over how many devices a tensor was cut, along whichever dimension: 1 where it is whole, 0 where it is no share."""
    differing = [d for d, (a, b) in enumerate(zip(found, wanted, strict=False)) if a != b]
    if len(found) != len(wanted) or len(differing) > 1:
        return 0
    if not differing:
        return 1
    d = differing[0]
    return wanted[d] // found[d] if found[d] and wanted[d] % found[d] == 0 else 0


def pieces(case: Case, files: tuple[str, ...]) -> dict[str, Mapping[str, Shape]]:
    """Declared name -> file -> what it holds of it, of every tensor that is in all files that hold any."""
    headers = [(file, case.inventory.headers[file].tensors) for file in files]
    holding = [(file, tensors) for file, tensors in headers if tensors]
    found: dict[str, Mapping[str, Shape]] = {}
    for name in case.needed:
        if name in case.found:
            stored = case.found[name].name
            held = {file: tensors[stored].shape for file, tensors in holding if stored in tensors}
            if len(held) == len(holding):
                found[name] = held
    return found
