"""Tensor-parallel ranks that each saved their share of the matrices under the names of the whole model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import formatting
from atlas.verification.comparison import Comparison
from atlas.verification.devices import over


def shares(comparison: Comparison) -> Iterator[Finding]:
    """Every layer's matrices are divided over the same number of ranks, some by rows and some by columns.

    A model that is smaller in the same ratio along just these axes would look the same, which no published one is.
    """
    inventory = comparison.inventory
    if inventory.shares or not comparison.mismatched:
        return
    ranks = _ranks(comparison)
    if ranks < 2:
        return
    names = [name for name in comparison.mismatched if _divided(comparison, name, ranks)]
    files = [
        file
        for file, header in inventory.headers.items()
        if any(comparison.ours(name) in comparison.mismatched for name in header.tensors)
    ]
    which = f"{files[0]} holds" if len(files) == 1 else f"{listing(files)} hold"
    count = "is" if len(files) == 1 else "are"
    missing = (
        ""
        if len(files) >= ranks
        else f", and only {len(files):,} of the {ranks:,} ranks' files {count} there"
    )
    yield Finding(
        code="shape",
        tensor=comparison.found[names[0]].name,
        file=files[0],
        expected=comparison.row(names[0]).shape,
        found=comparison.mismatched[names[0]].shape,
        count=len(names),
        message=f"{which} {'a' if len(files) == 1 else 'each a'} share of {ranks:,}, as a tensor-parallel rank has it: "
        f"{formatting.name_list(names)} ({formatting.tensor_count(len(names))}) are divided, the first is "
        f"{formatting.shape_text(comparison.mismatched[names[0]].shape)}, expected "
        f"{formatting.shape_text(comparison.row(names[0]).shape)}{missing}; join the shares of all ranks, or save the gathered weights",
    )
    comparison.explained(names)
    if len(files) > 1:
        comparison.explained_codes.update(("duplicate", "index", "loader"))


def _ranks(comparison: Comparison) -> int:
    """The number of ranks; 0 if the shapes are not those of shares."""
    in_layers = [
        name
        for name, row in comparison.needed.items()
        if row.layers is not None and len(row.shape) > 1 and name in comparison.found
    ]
    counts: Counter[int] = Counter()
    by_dimension: Counter[int] = Counter()
    for name in in_layers:
        found, wanted = comparison.found[name].shape, comparison.needed[name].shape
        count = over(found, wanted)
        if count < 2:
            return 0
        counts[count] += 1
        by_dimension[0 if found[0] != wanted[0] else 1] += 1
    if (
        len(by_dimension) < 2
    ):  # some are divided by rows and some by columns, wherever matrices follow each other
        return 0
    ranks, votes = counts.most_common(1)[0]
    # Of more ranks than key and value heads several have the same head, so these matrices are divided by fewer.
    if votes * 2 <= counts.total() or any(ranks % count for count in counts):
        return 0
    return ranks


def _divided(comparison: Comparison, name: str, ranks: int) -> bool:
    count = over(comparison.mismatched[name].shape, comparison.row(name).shape)
    return count > 1 and ranks % count == 0
