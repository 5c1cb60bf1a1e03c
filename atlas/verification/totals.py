"""Tensors, parameters and bytes, declared and found, and the parameters of each component."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from atlas import dtypes
from atlas.checkpoint.header import Tensor
from atlas.checkpoint.inventory import Inventory
from atlas.verification.case import Case
from atlas.verification.result import Amount, Component


@dataclass(frozen=True, slots=True)
class Totals:
    tensors: Amount
    parameters: Amount
    bytes: Amount
    components: tuple[Component, ...]


def totals(case: Case) -> Totals:
    """Add up a case, before any cause has explained part of it away."""
    rows = {id(row): row for row in case.needed.values()}
    needed = Counter(map(id, case.needed.values()))
    odd = [name for name in case.mismatched if name in case.needed]
    truncated = {case.ours(name) for name in case.inventory.truncated}
    absent = (case.needed.keys() - case.found.keys()) | (truncated & case.needed.keys() - set(odd))
    whole = needed - Counter(id(case.needed[name]) for name in (*odd, *absent))
    aside = {*case.buffers, *case.copies, *case.mismatched.keys() - odd}
    counted = [tensor for name, tensor in case.found.items() if name not in aside]
    lost = _lost(case.inventory, lambda name: case.ours(name) not in aside)
    expected = {weight.component: 0 for weight in case.graph.weights.values()}
    found = dict(expected)
    elements = 0
    for key, row in rows.items():
        elements += needed[key] * math.prod(row.shape)
        if row.tied_to is not None:
            continue
        for weight in row.weights:
            size = case.graph.size(weight) // math.prod(count for _, count in row.indices)
            expected[weight.component] += needed[key] * size
            found[weight.component] += whole[key] * size
    for name in odd:
        if (row := case.needed[name]).tied_to is None:
            found[row.weights[0].component] += case.mismatched[name].elements
    components = [Component(id, expected[id], found[id], found[id] - expected[id]) for id in expected]
    if strange := sum(tensor.elements for tensor in case.unexpected.values()):
        components.append(Component("unexpected", 0, strange, strange))
    model = case.graph.model
    dtype = model.dtype
    if not model.dtype_stated and case.found:
        dtype = Counter(tensor.dtype.partition("+")[0] for tensor in case.found.values()).most_common(1)[0][0]
    return Totals(
        tensors=Amount(
            len(case.needed), sum(tensor.name not in case.inventory.truncated for tensor in counted)
        ),
        parameters=Amount(sum(expected.values()), sum(found.values()) + strange),
        bytes=Amount(dtypes.size_bytes(dtype, elements), _bytes(counted) - lost),
        components=tuple(components),
    )


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(max(0, tensor.end - tensor.begin) for tensor in tensors)


def _lost(inventory: Inventory, counts: Callable[[str], bool]) -> int:
    """The bytes of tensors that lie beyond the end of a truncated file, of those that count by their stored names."""
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
    """What is there, where no model says what should be."""
    stored = inventory.tensors.values()
    whole = [tensor for tensor in stored if tensor.name not in inventory.truncated]
    return Totals(
        tensors=Amount(None, len(whole)),
        parameters=Amount(None, sum(tensor.elements for tensor in whole)),
        bytes=Amount(None, _bytes(stored) - _lost(inventory, lambda name: True)),
        components=(),
    )
