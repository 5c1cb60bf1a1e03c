"""Tensors' bytes as the system's file cache has them, mapped and not copied, by a process that survives their loss.

A copy into memory of its own was measured to make a token take half as long again. The price of a mapping is that a file
which somebody cuts short, or a disk that fails, is no error that a call returns: the thread that touches the page gets SIGBUS,
which ends the process. So while a model runs, SIGBUS is caught. The thread tries its page again and again, until the main
thread, which waits for it, lays zeros over the part that is lost. What was computed from zeros is never used: after each
block, `require_all` refuses.

That works because torch lets go of the interpreter's lock while it computes. Only the main thread can catch signals; where
another one runs the model, nothing is mapped.
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
from atlas.execution.files import Piece

LEAST_BYTES = 64 * 2**10
"""Less is read: a mapping costs more than so small a copy."""

_MAP_FIXED = 0x10  # on Linux and on macOS; the module mmap does not name it


@dataclass(slots=True, eq=False)
class _View:
    """A mapped piece.

    Attributes:
        pages: weakly, so that a piece is let go with the last tensor that shows it.
        address: of the first page.
        lost: zeros lie in the place of its pages.
    """

    pages: weakref.ref[mmap.mmap]
    piece: Piece
    address: int
    lost: bool = False

    def is_cut(self, pages: mmap.mmap) -> bool:
        """Whether the mapped file, which may have another in its place by now, ends before the piece does."""
        return pages.size() < self.piece.begin + self.piece.bytes


_views: list[_View] = []
_active = False


def is_possible() -> bool:
    """Whether pieces may be mapped now: someone looks after those that are lost."""
    return _active


def view(piece: Piece) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A piece's bytes.

    Raises:
        CheckpointError: the file cannot be read, or is not what it was.
        MemoryError: there is no room in the address space.
    """
    before = piece.begin % mmap.ALLOCATIONGRANULARITY
    with piece.file.opened() as file:
        try:
            # ACCESS_COPY: torch takes no memory that cannot be written to; nothing is, so no page is copied.
            pages = mmap.mmap(
                file.fileno(), piece.bytes + before, access=mmap.ACCESS_COPY, offset=piece.begin - before
            )
        except (OSError, ValueError) as error:  # ValueError: the file has become shorter since it was opened
            piece.file.require_same(file)
            raise MemoryError(str(error)) from None
    array = np.frombuffer(pages, np.uint8)
    _views.append(_View(weakref.ref(pages), piece, array.ctypes.data))
    return array[before:]


def require_all() -> None:
    """Refuse if anything mapped now was not the file's while it was used.

    Raises:
        CheckpointError: a file was cut short, written to or replaced, or its disk failed.
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
        if found.is_cut(pages):
            raise found.piece.file.cut_short()
        if found.lost:
            raise CheckpointError(f"{found.piece.file.path}: the disk failed (SIGBUS)", code="header")
    _views[:] = kept


class _Rescue:
    """Lets threads go on that hang at pages which are not there; to be called some times a second."""

    def __init__(self) -> None:
        self._signalled = False
        self._in_vain = 0

    def signalled(self, number: int, frame: object) -> None:
        self._signalled = True

    def __call__(self) -> None:
        if not self._signalled:
            return
        self._signalled = False
        alive = [(found, found.pages()) for found in list(_views) if not found.lost]
        held = [(found, pages) for found, pages in alive if pages is not None]
        lost = [(found, pages) for found, pages in held if found.is_cut(pages)]
        # No file is cut, and again a signal: it is the disk, and nobody knows under which piece.
        self._in_vain = 0 if lost else self._in_vain + 1
        for found, pages in lost or (held if self._in_vain > 1 else []):
            found.lost = True
            _map_zeros(found.address, len(pages))


@contextmanager
def surviving() -> Iterator[Callable[[], None]]:
    """Pieces may be mapped meanwhile; what is given has to be called some times a second by the main thread."""
    global _active
    rescue = _Rescue()
    guarded = hasattr(signal, "SIGBUS")  # on Windows nobody can cut a mapped file short
    before = signal.signal(signal.SIGBUS, rescue.signalled) if guarded else None
    _active = True
    try:
        yield rescue
    finally:
        _active = False
        _views.clear()  # what a traceback keeps of a failed run is no concern of the next one
        if guarded:
            # None is a handler from C, such as faulthandler's, which Python cannot set again.
            signal.signal(signal.SIGBUS, signal.SIG_DFL if before is None else before)


def _map_zeros(address: int, length: int) -> None:
    # PyDLL lets no other Python thread run during the call, and so none that would unmap the piece.
    call: Any = ctypes.PyDLL(None).mmap
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    call.restype = ctypes.c_void_p
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
    call(address, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
