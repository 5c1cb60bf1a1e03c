"""Files: missing shards, and tensors that the index does not list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from atlas import dtypes
from atlas.checkpoint.findings import Finding, listing
from atlas.checkpoint.inventory import Inventory
from atlas.verification import formatting
from atlas.verification.comparison import Comparison

MOST_FILES = 5
"""Missing files that get a finding each; more are one finding, since a download was interrupted."""


def absent(comparison: Comparison) -> Iterator[Finding]:
    """Each missing file with its tensors; one finding if no file is there at all."""
    inventory = comparison.inventory
    if inventory.shares or not inventory.absent:
        return
    hanging = {
        file: list(map(comparison.ours, inventory.misplaced.in_absent_file.get(file, ())))
        for file in inventory.absent
    }
    if not inventory.places:  # the other files' numbers show that files are missing, but not what is in them
        if names := list(comparison.missing):
            yield _finding(comparison, list(inventory.absent), names)
            comparison.explained(names)
        return
    groups = [[file] for file, names in hanging.items() if names]
    if len(groups) > MOST_FILES or (not inventory.headers and not inventory.unread):
        groups = [list(hanging)]
    for files in groups:
        names = [name for file in files for name in hanging[file]]
        yield _finding(comparison, files, names)
        comparison.explained(names)


def _finding(comparison: Comparison, files: Sequence[str], names: Sequence[str]) -> Finding:
    size = _bytes(comparison, names)
    what = f"{files[0]}{', which the index names,' if comparison.inventory.places else ''} {comparison.inventory.absent[files[0]]}"
    if len(files) > 1:
        what = f"{len(files):,} files are missing ({listing(files)})"
    return Finding(
        code="missing",
        tensor=names[0] if len(names) == 1 else None,
        file=files[0],
        expected=size,
        count=len(names),
        message=f"{what}: {formatting.tensor_count(len(names))} with {size:,} bytes are missing; "
        f"download {'it' if len(files) == 1 else 'them'} again",
    )


def absent_without_description(inventory: Inventory) -> Iterator[Finding]:
    """Missing files, if no description says what should be in them; one finding for all."""
    files = list(inventory.absent)
    if files:
        names = [name for file in files for name in inventory.misplaced.in_absent_file.get(file, ())]
        what = f"{files[0]} {inventory.absent[files[0]]}"
        if len(files) > 1:
            what = f"{len(files):,} files are missing ({listing(files)})"
        there = "it" if len(files) == 1 else "them"
        content = f": the index lists {formatting.tensor_count(len(names))} in {there}" if names else ""
        yield Finding(
            code="missing",
            file=files[0],
            count=len(names) or len(files),
            message=f"{what}{content}; download {there} again",
        )


def _bytes(comparison: Comparison, names: Iterable[str]) -> int:
    """The bytes of these tensors, as declared."""
    elements = sum(math.prod(comparison.needed[name].shape) for name in names if name in comparison.needed)
    return dtypes.size_bytes(comparison.graph.model.dtype, elements)


def not_listed(comparison: Comparison) -> Iterator[Finding]:
    """Stored tensors of the model that the index does not list."""
    places = comparison.inventory.places
    listed = set(map(comparison.ours, places)) if comparison.renamed else places.keys()
    names = (
        [name for name in comparison.needed if name not in listed and name in comparison.found]
        if listed
        else []
    )
    if names:
        file = comparison.inventory.file_of(comparison.found[names[0]])
        yield Finding(
            code="index",
            tensor=names[0],
            file=file,
            count=len(names),
            message=f"the index does not list {formatting.name_list(names)} ({formatting.tensor_count(len(names))}), the first in {file}: "
            "loaders that use the index do not load them",
        )
