"""Tensors, parameters and bytes, declared and found, and the parameters of each component."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from atlas import dtypes
from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.verification.comparison import Comparison
from atlas.verification.result import Amount, Component, DtypeTotal


@dataclass(frozen=True, slots=True)
class Totals:
    tensors: Amount
    parameters: Amount
    bytes: Amount
    components: tuple[Component, ...]


def totals(comparison: Comparison) -> Totals:
    """Add up a comparison, before any cause has removed tensors from it."""
    rows = {id(row): row for row in comparison.needed.values()}
    needed = Counter(map(id, comparison.needed.values()))
    odd = [name for name in comparison.mismatched if name in comparison.needed]
    truncated = _truncated(comparison.inventory)
    incomplete = {name for name, tensor in comparison.found.items() if tensor.name in truncated}
    absent = comparison.needed.keys() - (comparison.found.keys() - incomplete)
    odd = [name for name in odd if name not in incomplete]
    whole = needed - Counter(id(comparison.needed[name]) for name in (*odd, *absent))
    apart = {name for tensors in comparison.apart.values() for name in tensors}
    aside = {*comparison.buffers, *comparison.copies, *apart, *comparison.mismatched.keys() - odd}
    stored = {name: tensor for name, tensor in comparison.found.items() if name not in aside}
    counted = [tensor for name, tensor in stored.items() if name not in incomplete]
    lost = _lost(comparison.inventory, lambda name: comparison.ours(name) not in aside)
    expected = {weight.component: 0 for weight in comparison.graph.weights.values()}
    found = dict(expected)
    elements = 0
    for key, row in rows.items():
        elements += needed[key] * math.prod(row.shape)
        if row.tied_to is not None:
            continue
        for weight in row.weights:
            size = comparison.graph.size(weight) // math.prod(count for _, count in row.indices)
            expected[weight.component] += needed[key] * size
            found[weight.component] += whole[key] * size
    for name in odd:
        if (row := comparison.needed[name]).tied_to is None:
            found[row.weights[0].component] += comparison.mismatched[name].elements
    components = [Component(id, expected[id], found[id], found[id] - expected[id]) for id in expected]
    undeclared = sum(
        tensor.elements for name, tensor in comparison.unexpected.items() if name not in incomplete
    )
    if undeclared:
        components.append(Component("unexpected", 0, undeclared, undeclared))
    model = comparison.graph.model
    dtype = model.dtype
    if not model.dtype_stated and comparison.found:
        dtype = Counter(tensor.dtype.partition("+")[0] for tensor in comparison.found.values()).most_common(
            1
        )[0][0]
    return Totals(
        tensors=Amount(len(comparison.needed), len(counted)),
        parameters=Amount(sum(expected.values()), sum(found.values()) + undeclared),
        bytes=Amount(dtypes.size_bytes(dtype, elements), _bytes(stored.values()) - lost),
        components=tuple(components),
    )


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(max(0, tensor.end - tensor.begin) for tensor in tensors)


def _truncated(inventory: Inventory) -> set[str]:
    """The stored names of tensors that end beyond the end of their file: they are not found, as far as they go."""
    return {
        tensor.name
        for header in inventory.headers.values()
        if header.file_bytes - header.data_start < header.data_bytes
        for tensor in header.tensors.values()
        if tensor.end > header.file_bytes - header.data_start
        and (inventory.shares or inventory.tensors.get(tensor.name) is tensor)
    }


def _lost(inventory: Inventory, counts: Callable[[str], bool]) -> int:
    """The bytes beyond the end of truncated files, of the tensors that count.

    Args:
        counts: whether a tensor counts, by its stored name.
    """
    lost = 0
    for header in inventory.headers.values():
        there = header.file_bytes - header.data_start
        if there < header.data_bytes:
            lost += sum(
                tensor.end - max(tensor.begin, there)
                for tensor in header.tensors.values()
                if tensor.end > there
                and counts(tensor.name)
                and (inventory.shares or inventory.tensors.get(tensor.name) is tensor)
            )
    return lost


def by_dtype(inventory: Inventory) -> tuple[DtypeTotal, ...]:
    """What is stored in each dtype, the most bytes first."""
    found: dict[str, list[Tensor]] = {}
    for header in inventory.headers.values():
        for tensor in header.tensors.values():
            found.setdefault(tensor.dtype, []).append(tensor)
    rows = [
        DtypeTotal(dtype, len(tensors), sum(tensor.elements for tensor in tensors), _bytes(tensors))
        for dtype, tensors in found.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.bytes, row.dtype)))


def undescribed(inventory: Inventory) -> Totals:
    """The stored amounts, if no model declares what should be there."""
    stored, truncated = inventory.tensors.values(), _truncated(inventory)
    whole = [tensor for tensor in stored if tensor.name not in truncated]
    return Totals(
        tensors=Amount(None, len(whole)),
        parameters=Amount(None, sum(tensor.elements for tensor in whole)),
        bytes=Amount(None, _bytes(stored) - _lost(inventory, lambda name: True)),
        components=(),
    )
