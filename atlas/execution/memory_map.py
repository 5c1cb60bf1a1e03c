"""Tensors memory-mapped from their files, in a process that survives the loss of a mapped page.

Copying the bytes instead was measured to make a token take half as long again. But when a mapped file is truncated or its
disk fails, no call returns an error: the thread that touches the page receives SIGBUS, which ends the process. So SIGBUS is
handled while a model runs. The thread retries its page until the main thread, which waits for it, maps zeros over
the lost part. What was computed from zeros is never used: `require_unchanged` raises after each block.

This works because torch releases the interpreter's lock while it computes. Only the main thread can handle signals; if
another thread runs the model, nothing is mapped.
"""

from __future__ import annotations

import ctypes
import mmap
import signal
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from atlas.errors import CheckpointError
from atlas.execution.weight_files import Piece

LEAST_BYTES = 64 * 2**10
"""A smaller piece is read: a mapping costs more than so small a copy."""

_MAP_FIXED = 0x10  # on Linux and macOS; Python's mmap module has no name for it


@dataclass(slots=True, eq=False)
class _View:
    """A mapped piece.

    Attributes:
        pages: a weak reference, so that a mapping is freed with the last tensor that views it.
        address: of the first page.
        lost: its pages have been replaced by zeros.
    """

    pages: weakref.ref[mmap.mmap]
    piece: Piece
    address: int
    lost: bool = False

    def is_truncated(self, pages: mmap.mmap) -> bool:
        """Whether the mapped file, which may have been replaced at its path, ends before the piece does."""
        return pages.size() < self.piece.begin + self.piece.bytes


_views: list[_View] = []
_active = False


def is_possible() -> bool:
    """Whether pieces may be mapped now: SIGBUS is being handled."""
    return _active


def view(piece: Piece) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A piece's bytes.

    Raises:
        CheckpointError: the file cannot be read, or has changed.
        MemoryError: the address space is full.
    """
    before = piece.begin % mmap.ALLOCATIONGRANULARITY
    with piece.file.opened() as file:
        try:
            # ACCESS_COPY: torch requires writable memory; nothing writes to it, so no page is copied.
            pages = mmap.mmap(
                file.fileno(), piece.bytes + before, access=mmap.ACCESS_COPY, offset=piece.begin - before
            )
        except (OSError, ValueError) as error:  # ValueError: the file was truncated after it was opened
            piece.file.require_same(file)
            raise MemoryError(str(error)) from None
    array = np.frombuffer(pages, np.uint8)
    _views.append(_View(weakref.ref(pages), piece, array.ctypes.data))
    return array[before:]


def require_unchanged() -> None:
    """Refuse if a mapped file changed while it was used.

    Raises:
        CheckpointError: a file was truncated, modified or replaced, or its disk failed.
    """
    checked = set()
    kept = []
    for found in _views:
        pages = found.pages()
        if pages is None:
            continue
        kept.append(found)
        if found.piece.file.path not in checked:
            checked.add(found.piece.file.path)
            with found.piece.file.opened():
                pass
        if found.is_truncated(pages):
            raise found.piece.file.truncated()
        if found.lost:
            raise CheckpointError(f"{found.piece.file.path}: the disk failed (SIGBUS)", code="header")
    _views[:] = kept


class _LostPages:
    """Replaces lost pages by zeros, so that threads waiting for them go on; to be called a few times a second."""

    def __init__(self) -> None:
        self._signalled = False
        self._unexplained = 0

    def signalled(self, number: int, frame: object) -> None:
        self._signalled = True

    def __call__(self) -> None:
        if not self._signalled:
            return
        self._signalled = False
        alive = [(found, found.pages()) for found in list(_views) if not found.lost]
        mapped = [(found, pages) for found, pages in alive if pages is not None]
        lost = [(found, pages) for found, pages in mapped if found.is_truncated(pages)]
        # A second signal and no file is truncated: the disk failed, under an unknown piece.
        self._unexplained = 0 if lost else self._unexplained + 1
        for found, pages in lost or (mapped if self._unexplained > 1 else []):
            found.lost = True
            _map_zeros(found.address, len(pages))


@contextmanager
def sigbus_handled() -> Iterator[Callable[[], None]]:
    """Allow pieces to be mapped. The main thread has to call what is yielded a few times a second."""
    global _active
    lost_pages = _LostPages()
    guarded = hasattr(signal, "SIGBUS")  # on Windows a mapped file cannot be truncated
    before = signal.signal(signal.SIGBUS, lost_pages.signalled) if guarded else None
    _active = True
    try:
        yield lost_pages
    finally:
        _active = False
        _views.clear()  # a traceback may keep a failed run's mappings alive; the next run ignores them
        if guarded:
            # None is a handler from C, such as faulthandler's, which Python cannot set again.
            signal.signal(signal.SIGBUS, signal.SIG_DFL if before is None else before)


def _map_zeros(address: int, length: int) -> None:
    # PyDLL keeps the interpreter's lock during the call, so that no other thread unmaps the piece.
    call: Any = ctypes.PyDLL(None).mmap
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    call.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    call(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
