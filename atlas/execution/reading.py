"""Tensors from files: whole ones mapped, or read into memory that every block uses again, and a table's rows as they are taken."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from atlas.execution import mapped
from atlas.execution.devices import FLOATS
from atlas.execution.files import File, Piece

_ALIGNED = 64
"""Tensors begin at multiples of this in memory, wherever they begin in their file."""

_PART = 8 * 2**20
"""Bytes that one thread reads at a time."""


class Reader:
    """Reads the tensors of one block after the other into the same memory.

    A tensor shows that memory and copies nothing. As long as any tensor of an earlier block is in use, its memory is left
    alone and the next block gets new. Large tensors are mapped instead, where that can be survived.

    Args:
        for_cpu: whether the tensors are computed with where they are read. Mapped memory is handed to no other device's
            driver: what that makes of a page that is lost is not known.
    """

    def __init__(self, *, for_cpu: bool) -> None:
        self._for_cpu, self._maps = for_cpu, False
        self._memory = np.empty(0, np.uint8)
        self._unused = sys.getrefcount(self._memory)  # every array that shows a part of it adds one
        self._at = 0
        self._threads: ThreadPoolExecutor | None = None

    def room(self, pieces: Sequence[Piece]) -> int:
        """The bytes that pieces take of a block's memory: none, where they are mapped."""
        return sum(room(piece, self._maps) for piece in pieces)

    def begin(self) -> None:
        """Begin a block: whether its pieces may be mapped is decided once."""
        self._maps = self._for_cpu and mapped.is_possible()

    def make_room(self, room: int) -> None:
        """Memory of so many bytes for the block.

        Raises:
            MemoryError: there are not as many.
        """
        needed = room + _ALIGNED
        if len(self._memory) < needed or sys.getrefcount(self._memory) > self._unused:
            self._memory = np.empty(0, np.uint8)  # first let go of what there is
            self._memory = np.empty(needed, np.uint8)
        self._at = -int(self._memory.ctypes.data) % _ALIGNED

    def read(self, piece: Piece) -> Tensor:
        """A tensor, in the dtype it is stored in.

        Raises:
            CheckpointError: the file cannot be read, or is not what it was.
        """
        if not piece.size:
            return torch.empty(piece.shape, dtype=FLOATS[piece.dtype])
        if room(piece, self._maps):
            array = self._memory[self._at : self._at + piece.bytes]
            self._fill(piece.file, piece.begin, array.data)
            self._at += room(piece, self._maps)
        else:
            array = mapped.view(piece)
        return torch.from_numpy(array).view(FLOATS[piece.dtype]).view(piece.shape)

    def read_over(self, pieces: Sequence[Piece]) -> None:
        """The last pieces read are in use no more: the next ones take their place."""
        self._at -= self.room(pieces)

    def _fill(self, file: File, begin: int, into: memoryview) -> None:
        """Read with several threads what is worth it: copying from the system's cache keeps one of them busy."""
        if len(into) <= 2 * _PART:
            file.read(begin, into)
            return
        if self._threads is None:
            self._threads = ThreadPoolExecutor(min(4, os.cpu_count() or 1))
        parts = range(0, len(into), _PART)
        for _ in self._threads.map(lambda at: file.read(begin + at, into[at : at + _PART]), parts):
            pass


def room(piece: Piece, maps: bool) -> int:
    if not piece.size or (maps and piece.bytes >= mapped.LEAST_BYTES):
        return 0
    return -(-piece.bytes // _ALIGNED) * _ALIGNED


class Rows:
    """A matrix of which rows are read as they are taken: of an embedding of a gigabyte, one row for each token.

    It stands for a tensor wherever one is only indexed by row numbers.
    """

    def __init__(self, piece: Piece, device: torch.device, dtype: torch.dtype) -> None:
        self._piece, self._device, self.dtype = piece, device, dtype

    def __getitem__(self, indices: Tensor) -> Tensor:
        """The rows at some indices: indices × columns.

        Raises:
            IndexError: there is no such row.
            CheckpointError: the file cannot be read, or is not what it was.
        """
        piece = self._piece
        numbers, places = torch.unique(indices.cpu(), return_inverse=True)
        if len(numbers) and not 0 <= int(numbers[0]) <= int(numbers[-1]) < piece.shape[0]:
            raise IndexError(f"a row outside of the {piece.shape[0]:,} there are")
        width = piece.bytes // piece.shape[0]
        data: Any = np.empty((len(numbers), width), np.uint8)
        for number, row in zip(numbers.tolist(), data, strict=True):
            piece.file.read(piece.begin + number * width, row.data)
        rows = torch.from_numpy(data).view(FLOATS[piece.dtype])
        return rows.to(self._device, self.dtype)[places.to(self._device)]
