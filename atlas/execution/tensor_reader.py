"""Tensors from files: large ones memory-mapped, others read into a buffer that every block reuses, and single rows of a table."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from atlas.execution import memory_map
from atlas.execution.devices import FLOATS
from atlas.execution.weight_files import File, Piece

_ALIGNED = 64
"""Tensors start at multiples of this in memory, whatever their offset in the file."""

_PART = 8 * 2**20
"""Bytes that one thread reads at a time."""

_COMPARED = 2**20
"""Elements of two tensors that are compared at a time."""


class TensorReader:
    """Reads the tensors of one block after another into the same buffer.

    A tensor is a view of that buffer. While any tensor of an earlier block is in use, the next block gets a new buffer.
    Large tensors are memory-mapped instead, where a lost page can be handled.

    Args:
        for_cpu: whether the tensors are used on the CPU. Mapped memory is not given to another device's driver, whose
            behaviour on a lost page is unknown.
    """

    def __init__(self, *, for_cpu: bool) -> None:
        self._for_cpu, self._maps = for_cpu, False
        self._memory = np.empty(0, np.uint8)
        self._unused = sys.getrefcount(self._memory)  # every array that is a view of it adds one
        self._at = 0
        self._threads: ThreadPoolExecutor | None = None

    def room(self, pieces: Sequence[Piece]) -> int:
        """The bytes of a block's buffer that pieces take; a mapped piece takes none."""
        return sum(room(piece, self._maps) for piece in pieces)

    def begin(self) -> None:
        """Start a block. Whether its pieces may be mapped is decided once for all of them."""
        self._maps = self._for_cpu and memory_map.is_possible()

    def make_room(self, room: int) -> None:
        """Provide a buffer of that many bytes for the block.

        Raises:
            MemoryError: there is not enough memory.
        """
        needed = room + _ALIGNED
        if len(self._memory) < needed or sys.getrefcount(self._memory) > self._unused:
            self._memory = np.empty(0, np.uint8)  # free the old buffer first
            self._memory = np.empty(needed, np.uint8)
        self._at = -int(self._memory.ctypes.data) % _ALIGNED

    def read(self, piece: Piece) -> Tensor:
        """A tensor, in the dtype it is stored in.

        Raises:
            CheckpointError: the file cannot be read, or has changed.
        """
        if not piece.elements:
            return torch.empty(piece.shape, dtype=FLOATS[piece.dtype])
        if room(piece, self._maps):
            array = self._memory[self._at : self._at + piece.bytes]
            self._fill(piece.file, piece.begin, array.data)
            self._at += room(piece, self._maps)
        else:
            array = memory_map.view(piece)
        return torch.from_numpy(array).view(FLOATS[piece.dtype]).view(piece.shape)

    def read_over(self, pieces: Sequence[Piece]) -> None:
        """Reuse the space of the last pieces read, which are no longer in use."""
        self._at -= self.room(pieces)

    def _fill(self, file: File, begin: int, into: memoryview) -> None:
        """Read a large piece with several threads: copying from the page cache is limited by one core."""
        if len(into) <= 2 * _PART:
            file.read(begin, into)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(4, os.cpu_count() or 1))
        parts = range(0, len(into), _PART)
        for _ in self._threads.map(lambda at: file.read(begin + at, into[at : at + _PART]), parts):
            pass


def room(piece: Piece, maps: bool) -> int:
    """The bytes of the buffer that a piece takes."""
    if not piece.elements or (maps and piece.bytes >= memory_map.LEAST_BYTES):
        return 0
    return -(-piece.bytes // _ALIGNED) * _ALIGNED


class LazyRows:
    """A matrix whose rows are read when they are looked up: one row per token of an embedding of a gigabyte.

    It replaces a tensor wherever that is only indexed by row numbers.
    """

    def __init__(self, piece: Piece, device: torch.device, dtype: torch.dtype) -> None:
        self._piece, self._device, self.dtype = piece, device, dtype

    def __getitem__(self, indices: Tensor) -> Tensor:
        """The rows at these indices: indices × columns.

        Raises:
            IndexError: an index is outside the matrix.
            CheckpointError: the file cannot be read, or has changed.
        """
        piece = self._piece
        numbers, places = torch.unique(indices.cpu(), return_inverse=True)
        if len(numbers) and not 0 <= int(numbers[0]) <= int(numbers[-1]) < piece.shape[0]:
            raise IndexError(f"a row index is outside the {piece.shape[0]:,} rows")
        width = piece.bytes // piece.shape[0]
        data: Any = np.empty((len(numbers), width), np.uint8)
        for number, row in zip(numbers.tolist(), data, strict=True):
            piece.file.read(piece.begin + number * width, row.data)
        rows = torch.from_numpy(data).view(FLOATS[piece.dtype])
        return rows.to(self._device, self.dtype)[places.to(self._device)]


def same_values(ones: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Whether two tensors have equal values. Reading stops at the first difference.

    Raises:
        CheckpointError: a file cannot be read, or has changed.
    """
    if [piece.shape for piece in ones] != [piece.shape for piece in others]:
        return False
    return all(
        torch.equal(_elements(one, begin), _elements(other, begin))
        for one, other in zip(ones, others, strict=True)
        for begin in range(0, one.elements, _COMPARED)
    )


def _elements(piece: Piece, begin: int) -> Tensor:
    """Some elements of a piece from one on, in float64, which holds the values of every narrower float."""
    dtype = FLOATS[piece.dtype]
    count = min(_COMPARED, piece.elements - begin)
    data = np.empty(count * dtype.itemsize, np.uint8)
    piece.file.read(piece.begin + begin * dtype.itemsize, data.data)
    return torch.from_numpy(data).view(dtype).double()
