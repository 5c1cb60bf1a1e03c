"""Divide a file into blocks, each with the parts of tensors in it, so that every element is whole.

A file may have tensors of several dtypes, and its data may start at any byte, so a fixed step does not work: a block that
would end inside an element ends after it. Otherwise blocks end at multiples of their size, where the system's large pages
end too; a block then takes a dozen page faults and not a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atlas.checkpoint.header import Header, Tensor
from atlas.dtypes import BITS

LARGE_PAGE_BYTES = 2 * 2**20
MOST_BYTES = 128 * 2**20
"""Bytes of all blocks that are in memory at the same time."""


def block_bytes(threads: int) -> int:
    """The size of a block if every thread has one: large enough that the cost per block hardly counts, and quick to read."""
    share = MOST_BYTES // threads // LARGE_PAGE_BYTES * LARGE_PAGE_BYTES
    return min(max(share, LARGE_PAGE_BYTES), 32 * 2**20)


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a tensor that is in a block.

    Attributes:
        start: the number of the tensor's elements before it.
        begin, end: its bytes, counted from the block's begin.
    """

    tensor: Tensor
    start: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Block:
    """Bytes of a file, from `begin` to `end`."""

    begin: int
    end: int
    parts: tuple[Part, ...]


def element_bytes(dtype: str) -> int:
    """The bytes of one element; of types narrower than a byte, one byte."""
    return max(1, BITS[dtype] // 8)


def readable(header: Header) -> list[Tensor]:
    """The tensors with values, as far as the header can be trusted.

    One that overlaps the tensor before it, or whose offsets contradict its shape, is an `offsets` finding already, and what
    its values are nobody knows.
    """
    found: list[Tensor] = []
    end = 0
    for tensor in header.tensors.values():
        size = tensor.end - tensor.begin
        if tensor.begin >= end and size > 0 and tensor.elements * BITS[tensor.dtype] == 8 * size:
            found.append(tensor)
            end = tensor.end
    return found


def split(header: Header, begin: int, size: int) -> Iterator[Block]:
    """The blocks of a file from a byte on, up to the end of the file as it was found; of this size, or a little more."""
    data, tensors, stop = header.data_start, readable(header), header.file_bytes
    i = 0
    while begin < stop:
        end = min((begin // size + 1) * size, stop)
        parts = []
        while i < len(tensors) and data + tensors[i].begin < end:
            tensor = tensors[i]
            first, unit = data + tensor.begin, element_bytes(tensor.dtype)
            if end < data + tensor.end:
                end = min(end + (first - end) % unit, stop)
            low, high = max(begin, first), min(end, data + tensor.end)
            if whole := (high - low) // unit * unit:
                parts.append(Part(tensor, (low - first) // unit, low - begin, low - begin + whole))
            if data + tensor.end > end:
                break
            i += 1
        yield Block(begin, end, tuple(parts))
        begin = end
