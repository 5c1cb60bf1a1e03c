"""The work items of `--deep`: a file, read once for its values and its hash, or two tensors that should be equal.

The values of blocks may be checked in any order, but a hash needs the blocks in order. If two threads share a file, one checks
the values of the next block while the other hashes its own, and then waits for its turn.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial

from atlas.checkpoint.header import Header, Tensor
from atlas.errors import CheckpointError
from atlas.verification.deep.blocks import Block, Part, element_bytes, split
from atlas.verification.deep.memory_map import Source
from atlas.verification.deep.patterns import PATTERNS
from atlas.verification.deep.thread_pool import MOST_THREADS, Job
from atlas.verification.deep.values import Bytes, Values, differing, look

HASHING_THREADS = 2
"""Threads for one hashed file: hashing takes several times as long as checking values, so a third thread would only wait."""

MOST_OPENED = 64
"""Small tensors of a block that are read one by one; a hostile file may have a million of them."""


class FileReading:
    """Reads one file: checks its values and computes its hashes.

    Args:
        algorithms: the hashes to compute, `sha256` and `md5`; if there are none, only the data is read, not the header.
        block_bytes: the bytes to read at a time.

    Attributes:
        bytes: the bytes to read.
        values: tensor -> what is known of its values, as far as they could be read.
        error: why the file could not be read to its end.
    """

    def __init__(self, source: Source, header: Header, algorithms: Collection[str], block_bytes: int) -> None:
        self.source = source
        self.header = header
        self.most = HASHING_THREADS if algorithms else MOST_THREADS
        self.values: dict[str, Values] = defaultdict(Values)
        self.error: CheckpointError | None = None
        begin = 0 if algorithms else header.data_start
        self.bytes = header.file_bytes - begin
        self._hashes = {name: hashlib.new(name, usedforsecurity=False) for name in algorithms}
        self._blocks = enumerate(split(header, begin, block_bytes))
        self._turn = 0
        self._changed = threading.Condition()

    def digest(self, algorithm: str) -> str | None:
        """A hash in hexadecimal digits; None if it was not computed, or the file could not be read to its end."""
        return self._hashes[algorithm].hexdigest() if algorithm in self._hashes and not self.error else None

    def take(self) -> Job | None:
        i, block = next(self._blocks, (0, None))
        return None if block is None or self.error else partial(self._read, i, block)

    def _read(self, i: int, block: Block, stop: threading.Event) -> int:
        try:
            with self._data(block) as (data, mapped):
                found = [(part.tensor.name, self._look(part, block, data, mapped)) for part in block.parts]
                if self._hashes:
                    self._hash_in_turn(i, data, stop)
        except CheckpointError as error:
            with self._changed:
                self.error = self.error or error.with_traceback(None)  # which holds the block
                self._changed.notify_all()
            return 0
        with self._changed:
            for name, values in found:
                self.values[name] |= values
        return block.end - block.begin

    @contextmanager
    def _data(self, block: Block) -> Iterator[tuple[Bytes, bool]]:
        """A block's bytes, and whether they are mapped. A block with many small tensors is not: each would be read again."""
        small = sum(not self.source.maps(part.end - part.begin) for part in block.parts)
        if small > MOST_OPENED or not self.source.maps(block.end - block.begin):
            yield self.source.copy(block.begin, block.end), False
        else:
            with self.source.block(block.begin, block.end) as data:
                yield data, True

    def _look(self, part: Part, block: Block, data: Bytes, mapped: bool) -> Values:
        there = data[part.begin : part.end]
        if mapped and not self.source.maps(there.size):
            there = self.source.copy(block.begin + part.begin, block.begin + part.end)
        return look(there, PATTERNS[part.tensor.dtype], part.start)

    def _hash_in_turn(self, i: int, data: Bytes, stop: threading.Event) -> None:
        with self._changed:
            while self._turn != i:
                if stop.is_set() or self.error:
                    return
                self._changed.wait(0.1)
        for running in self._hashes.values():
            running.update(data.data)
        with self._changed:
            self._turn += 1
            self._changed.notify_all()


Side = tuple[Source, int]
"""A file, and the byte at which a tensor begins."""


class PairComparison:
    """Compares two tensors of one dtype and shape, bit by bit.

    Attributes:
        differing: the number of elements that differ.
        first: the first of these; None if the tensors are equal.
        error: why one of them could not be read.
    """

    most = MOST_THREADS

    def __init__(self, copy: Side, original: Side, tensor: Tensor, block_bytes: int) -> None:
        self.differing = 0
        self.first: int | None = None
        self.error: CheckpointError | None = None
        self._sides = (copy, original)
        self._size = tensor.end - tensor.begin
        self._element_bytes = element_bytes(tensor.dtype)
        self._step = block_bytes // 2  # of either side
        self._offsets = iter(range(0, self._size, self._step))
        self._changed = threading.Lock()
        self.bytes = 2 * self._size

    def take(self) -> Job | None:
        offset = next(self._offsets, None)
        return None if offset is None or self.error else partial(self._compare, offset)

    def _compare(self, offset: int, stop: threading.Event) -> int:
        size = min(self._step, self._size - offset)
        (a, a_begin), (b, b_begin) = ((source, begin + offset) for source, begin in self._sides)
        try:
            with a.block(a_begin, a_begin + size) as ours, b.block(b_begin, b_begin + size) as theirs:
                count, first = differing(ours, theirs, self._element_bytes)
        except CheckpointError as error:
            self.error = error.with_traceback(None)
            return 0
        if first is not None:
            with self._changed:
                self.differing += count
                first += offset // self._element_bytes
                self.first = first if self.first is None else min(first, self.first)
        return 2 * size
