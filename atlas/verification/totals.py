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
from atlas.verification.result import Amount, Component


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
    absent = comparison.needed.keys() - comparison.found.keys()
    whole = needed - Counter(id(comparison.needed[name]) for name in (*odd, *absent))
    aside = {*comparison.buffers, *comparison.copies, *comparison.mismatched.keys() - odd}
    counted = [tensor for name, tensor in comparison.found.items() if name not in aside]
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
    if strange := sum(tensor.elements for tensor in comparison.unexpected.values()):
        components.append(Component("unexpected", 0, strange, strange))
    model = comparison.graph.model
    dtype = model.dtype
    if not model.dtype_stated and comparison.found:
        dtype = Counter(tensor.dtype.partition("+")[0] for tensor in comparison.found.values()).most_common(
            1
        )[0][0]
    return Totals(
        tensors=Amount(len(comparison.needed), len(counted)),
        parameters=Amount(sum(expected.values()), sum(found.values()) + strange),
        bytes=Amount(dtypes.size_bytes(dtype, elements), _bytes(counted) - lost),
        components=tuple(components),
    )


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(max(0, tensor.end - tensor.begin) for tensor in tensors)


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


def undescribed(inventory: Inventory) -> Totals:
    """The stored amounts, if no model declares what should be there."""
    stored = inventory.tensors.values()
    return Totals(
        tensors=Amount(None, len(stored)),
        parameters=Amount(None, sum(tensor.elements for tensor in stored)),
        bytes=Amount(None, _bytes(stored) - _lost(inventory, lambda name: True)),
        components=(),
    )
