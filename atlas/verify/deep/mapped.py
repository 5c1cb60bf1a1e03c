"""A block of a file as memory: its pages as the system has them, without a copy.

Mapping reads what is in the page cache half as fast again as `read` into a buffer does (`benchmarks/deep.py`). The price is
that a file which somebody cuts short meanwhile, or a disk that fails, is no error that a call returns: the thread that
touches the page gets SIGBUS, which ends the process. So while blocks are read, SIGBUS has a handler. The main thread runs
it, as Python does with every signal; it lays zeros over the block that has no pages any more, the thread goes on, and the
block is reported as unreadable. Where it is not the main thread that waits for the blocks, SIGBUS is left as it is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atlas.errors import CheckpointError
from atlas.verify.deep.values import Bytes

_MAP_FIXED = 0x10  # on Linux and on macOS; the module mmap does not name it


@dataclass(slots=True, eq=False)
class _View:
    """A block that is mapped at the moment.

    Attributes:
        pages: its bytes, and those before it that its first page has.
        end: where it ends in the file.
        lost: it has no pages any more, and zeros in their place.
    """

    descriptor: int
    pages: Bytes
    end: int
    lost: bool = False

    def is_cut(self) -> bool:
        """Whether the file ends before the block does, by now."""
        try:
            return os.fstat(self.descriptor).st_size < self.end
        except OSError:  # closed, because the block is done with
            return False


_views: list[_View] = []


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is read in blocks, by several threads at once.

    Attributes:
        where: its name, for the messages.
    """

    path: Path
    where: str

    @contextmanager
    def block(self, begin: int, end: int) -> Iterator[Bytes]:
        """The bytes from `begin` to `end`; they are let go with the last array that shows them.

        Raises:
            CheckpointError: the file cannot be read (`header`), or ends before that by now (`truncated`).
        """
        before = begin % mmap.ALLOCATIONGRANULARITY
        try:
            file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error.strerror) from None
        with file:
            try:
                pages = mmap.mmap(
                    file.fileno(), end - begin + before, access=mmap.ACCESS_READ, offset=begin - before
                )
            except ValueError:  # longer than the file
                raise self._cut_short(end) from None
            except OSError as error:
                raise self._unreadable(error.strerror) from None
            view = _View(file.fileno(), np.frombuffer(pages, np.uint8), end)
            _views.append(view)
            try:
                yield view.pages[before:]
            finally:
                _views.remove(view)
            if view.is_cut():  # seen without SIGBUS too: what is left of its last page reads as zeros
                raise self._cut_short(end)
        if view.lost:
            raise self._unreadable("the disk failed (SIGBUS)")

    def _cut_short(self, end: int) -> CheckpointError:
        return CheckpointError(
            f"{self.where}: was cut short while it was read: it ends before byte {end:,} by now",
            hint="check it again when nothing writes to it any more",
            code="truncated",
        )

    def _unreadable(self, reason: str | None) -> CheckpointError:
        return CheckpointError(f"{self.where}: the file cannot be read: {reason}", code="header")


@contextmanager
def surviving() -> Iterator[None]:
    """Read blocks meanwhile, and live on where the pages of one are gone."""
    bus = getattr(signal, "SIGBUS", None)  # not on Windows, where nobody can cut a mapped file short
    if bus is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(bus, _lay_zeros)
    try:
        yield
    finally:
        signal.signal(bus, before)


def _lay_zeros(number: int, frame: object) -> None:
    """Let the thread that hangs at a page which is not there go on."""
    views = list(_views)
    if not views:  # nothing of ours: as if there were no handler
        signal.signal(number, signal.SIG_DFL)
    for view in [view for view in views if view.is_cut()] or views:
        view.lost = True
        _map_zeros(view.pages.ctypes.data, view.pages.nbytes)


def _map_zeros(address: int, length: int) -> None:
    # PyDLL lets no other Python thread run during the call, and so none that would unmap the block.
    call: Any = ctypes.PyDLL(None).mmap
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    call.restype = ctypes.c_void_p
    call(address, length, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)
