"""Files: a shard that is not there, and tensors that an index does not list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from atlas import dtypes
from atlas.checkpoint.findings import Finding, listing
from atlas.checkpoint.inventory import Inventory
from atlas.verification import words
from atlas.verification.case import Case

MOST_FILES = 5
"""Files that are not there and are a finding each; more are a download that was stopped."""


def absent(case: Case) -> Iterator[Finding]:
    """Each file that is not there, with what hangs on it; all in one where not a single one is there."""
    inventory = case.inventory
    if inventory.shares or not inventory.absent:
        return
    hanging = {
        file: list(map(case.ours, inventory.misplaced.in_absent_file.get(file, ())))
        for file in inventory.absent
    }
    if (
        not inventory.places
    ):  # the others' numbers tell that there should be such files, and not what is in them
        if names := list(case.missing):
            yield _finding(case, list(inventory.absent), names)
            case.explained(names)
        return
    groups = [[file] for file, names in hanging.items() if names]
    if len(groups) > MOST_FILES or (not inventory.headers and not inventory.unread):
        groups = [list(hanging)]
    for files in groups:
        names = [name for file in files for name in hanging[file]]
        yield _finding(case, files, names)
        case.explained(names)


def _finding(case: Case, files: Sequence[str], names: Sequence[str]) -> Finding:
    size = _bytes(case, names)
    what = f"{files[0]}{', which the index names,' if case.inventory.places else ''} {case.inventory.absent[files[0]]}"
    if len(files) > 1:
        what = f"{len(files):,} files are not there ({listing(files)})"
    return Finding(
        code="missing",
        tensor=names[0] if len(names) == 1 else None,
        file=files[0],
        expected=size,
        count=len(names),
        message=f"{what}: {words.tensors(len(names))} and {size:,} bytes are missing for that; download it again",
    )


def absent_anyway(inventory: Inventory) -> Iterator[Finding]:
    """Files that are not there, where no description tells what should be in them; in one."""
    files = list(inventory.absent)
    if files:
        names = [name for file in files for name in inventory.misplaced.in_absent_file.get(file, ())]
        what = f"{files[0]} {inventory.absent[files[0]]}"
        if len(files) > 1:
            what = f"{len(files):,} files are not there ({listing(files)})"
        hold = f": the index places {words.tensors(len(names))} in that" if names else ""
        yield Finding(
            code="missing",
            file=files[0],
            count=len(names) or len(files),
            message=f"{what}{hold}; download it again",
        )


def _bytes(case: Case, names: Iterable[str]) -> int:
    """What these tensors take as they are declared."""
    elements = sum(math.prod(case.needed[name].shape) for name in names if name in case.needed)
    return dtypes.size_bytes(case.graph.model.dtype, elements)


def not_listed(case: Case) -> Iterator[Finding]:
    """Tensors of the model that are there, and that the index knows nothing of."""
    places = case.inventory.places
    listed = set(map(case.ours, places)) if case.renamed else places.keys()
    names = [name for name in case.needed if name not in listed and name in case.found] if listed else []
    if names:
        file = case.inventory.file_of(case.found[names[0]])
        yield Finding(
            code="index",
            tensor=names[0],
            file=file,
            count=len(names),
            message=f"the index does not list {words.together(names)} ({words.tensors(len(names))}), the first in {file}: a "
            "loader that goes by the index leaves out what it does not list",
        )
