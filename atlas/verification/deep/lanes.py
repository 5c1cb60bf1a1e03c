"""What is read in order: a file, for its values and its hash in one pass, or two tensors that should be equal.

The values of blocks may be looked at in any order, and a hash may not be computed so. Where two threads share a file, one
looks at the values of the next block while the other's goes into the hash, and then waits for its turn.
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
from atlas.verification.deep.blocks import Block, Part, cut, element_bytes
from atlas.verification.deep.crew import MOST_THREADS, Job
from atlas.verification.deep.mapped import Source
from atlas.verification.deep.patterns import PATTERNS
from atlas.verification.deep.values import Bytes, Values, differing, look

HASHING_THREADS = 2
"""In one file: the hash takes several times as long as the values, so a third thread would only wait."""

MOST_OPENED = 64
"""Small tensors of a block that are read one by one; a hostile file has a million of them."""


class FileLane:
    """One file.

    Args:
        algorithms: of the hashes, `sha256` and `md5`; where none is wanted, only the data is read.
        block_bytes: how much to read at a time.

    Attributes:
        bytes: how much there is to read.
        values: tensor -> what its values are, as far as they could be read.
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
        self._blocks = enumerate(cut(header, begin, block_bytes))
        self._turn = 0
        self._changed = threading.Condition()

    def digest(self, algorithm: str) -> str | None:
        """A hash in hexadecimal digits; None where it was not wanted, or the file could not be read to its end."""
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
        """A block's bytes, and whether they are mapped: not where it would have to be opened again for many small tensors."""
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
"""A file, and where in it a tensor begins."""


class PairLane:
    """Two tensors of one dtype and shape, bit by bit.

    Attributes:
        differing: in how many elements they differ.
        first: the first of these; None where they are equal.
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
