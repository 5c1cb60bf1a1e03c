"""Map a block of a file into memory, without a copy.

Reading mapped pages from the page cache is one and a half times as fast as `read` into a buffer (`benchmarks/deep.py`). The price:
if the file is truncated meanwhile, or the disk fails, no call returns an error. The thread that touches the page receives SIGBUS,
which ends the process. So SIGBUS is caught while blocks are read, and the thread retries the page until the waiting main thread
helps: it maps zeros over a block whose pages are gone, and the block is reported as unreadable. The signal's handler does not do
this, since Python may not run it while a thread receives the signal a million times a second.

Two things follow. Only the main thread can catch signals, so a check in another thread reads and does not map. And a thread that
hangs must not hold the GIL. NumPy holds it for up to a few hundred numbers, hashlib for up to two thousand bytes, so blocks that
small are read, not mapped.
"""

from __future__ import annotations

import ctypes
import io
import mmap
import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from atlas.errors import CheckpointError
from atlas.verification.deep.values import Bytes

LEAST_MAPPED_BYTES = 32 * 2**10
"""Smaller blocks are read: this is four thousand of the widest numbers, well above what NumPy handles while holding the GIL."""

_MAP_FIXED = 0x10  # on Linux and on macOS; the module mmap does not name it


@dataclass(slots=True, eq=False)
class _View:
    """A block that is mapped now.

    Attributes:
        pages: its bytes, from the start of its first page.
        end: where it ends in the file.
        lost: its pages are gone, and zeros are mapped instead.
    """

    descriptor: int
    pages: Bytes
    end: int
    lost: bool = False

    def is_truncated(self) -> bool:
        """Whether the file now ends before the block does."""
        try:
            return os.fstat(self.descriptor).st_size < self.end
        except OSError:  # closed, because the block is done
            return False


_views: list[_View] = []


class Stamp(NamedTuple):
    """What identifies a file's content: it differs for another file, and after a write."""

    device: int
    inode: int
    changed_ns: int
    bytes: int


def stamp(path: Path, file_bytes: int) -> Stamp | None:
    """A file's stamp, with the size it had when its header was read; None if the file is gone."""
    try:
        return _stamped(path.stat())._replace(bytes=file_bytes)
    except OSError:
        return None


def _stamped(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)


@dataclass(frozen=True, slots=True)
class Source:
    """A file that is read in blocks, by several threads at once.

    Attributes:
        where: its path, for messages.
        mapped: whether blocks may be mapped, which needs `catch_sigbus`.
        stamp: compared at every block, so that blocks of two files never pass for one.
    """

    path: Path
    where: str
    mapped: bool = False
    stamp: Stamp | None = None

    @contextmanager
    def block(self, begin: int, end: int) -> Iterator[Bytes]:
        """The bytes from `begin` to `end`; mapped ones are unmapped with the last array that uses them.

        Raises:
            CheckpointError: the file cannot be read or was replaced (`header`), or was truncated (`truncated`).
        """
        if not self.maps(end - begin):
            yield self.copy(begin, end)
            return
        before = begin % mmap.ALLOCATIONGRANULARITY
        with self._open() as file:
            try:
                pages = mmap.mmap(
                    file.fileno(), end - begin + before, access=mmap.ACCESS_READ, offset=begin - before
                )
            except ValueError:  # longer than the file
                raise self._truncated(end) from None
            except OSError as error:
                raise self._unreadable(error.strerror) from None
            self._require_same(file, end)
            view = _View(file.fileno(), np.frombuffer(pages, np.uint8), end)
            _views.append(view)
            try:
                yield view.pages[before:]
            finally:
                _views.remove(view)
            if view.is_truncated():  # may happen without SIGBUS: the rest of the last page reads as zeros
                raise self._truncated(end)
            self._require_same(file, end)
        if view.lost:
            raise self._unreadable("the disk failed (SIGBUS)")

    def maps(self, size: int) -> bool:
        """Whether a block of this many bytes is mapped."""
        return self.mapped and size >= LEAST_MAPPED_BYTES

    def copy(self, begin: int, end: int) -> Bytes:
        """A copy of the bytes from `begin` to `end`.

        Raises:
            CheckpointError: as `block`.
        """
        data = np.empty(end - begin, np.uint8)
        with self._open() as file:
            try:
                file.seek(begin)
                done = 0
                while done < data.size:
                    count = file.readinto(data[done:].data)
                    if not count:
                        raise self._truncated(end)
                    done += count
                self._require_same(file, end)
            except OSError as error:
                raise self._unreadable(error.strerror) from None
        return data

    def _require_same(self, file: io.FileIO, end: int) -> None:
        if self.stamp is None:
            return
        found = _stamped(os.fstat(file.fileno()))
        if found.bytes < self.stamp.bytes:
            raise self._truncated(end)
        if found != self.stamp:
            raise CheckpointError(
                f"{self.where}: was written to or replaced while it was read",
                hint="check it again when nothing writes to it",
                code="header",
            )

    def _open(self) -> io.FileIO:
        # Not blocking: the file may have been replaced by a FIFO.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            file = io.FileIO(os.open(self.path, flags))
        except OSError as error:
            raise self._unreadable(error.strerror) from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise self._unreadable("it is no longer a regular file")
        return file

    def _truncated(self, end: int) -> CheckpointError:
        return CheckpointError(
            f"{self.where}: was truncated while it was read: it now ends before byte {end:,}",
            hint="check it again when nothing writes to it",
            code="truncated",
        )

    def _unreadable(self, reason: str | None) -> CheckpointError:
        return CheckpointError(f"{self.where}: the file cannot be read: {reason}", code="header")


class SigbusHandler:
    """Frees threads that hang at pages which are gone; to be called several times a second."""

    def __init__(self) -> None:
        self._signalled = False
        self._in_vain = 0

    def signalled(self, number: int, frame: object) -> None:
        self._signalled = True

    def __call__(self) -> None:
        views = [view for view in list(_views) if not view.lost]
        lost = [view for view in views if view.is_truncated()]
        if lost:
            self._in_vain = 0
        elif self._signalled:
            self._in_vain += 1
            # The first may be left over from a signal that was handled. A second one means that the disk failed; under which
            # block is unknown.
            lost = views if self._in_vain > 1 else []
        self._signalled = False
        for view in lost:
            view.lost = True
            _map_zeros(view.pages.ctypes.data, view.pages.nbytes)


def can_catch_sigbus() -> bool:
    """Whether blocks may be mapped: signals can be caught in the main thread only; Windows does not truncate mapped files."""
    return not hasattr(signal, "SIGBUS") or threading.current_thread() is threading.main_thread()


@contextmanager
def catch_sigbus() -> Iterator[SigbusHandler]:
    """While this is active, a block whose pages are gone is an error and does not end the process."""
    handler = SigbusHandler()
    if not can_catch_sigbus() or not hasattr(signal, "SIGBUS"):
        yield handler
        return
    before = signal.signal(signal.SIGBUS, handler.signalled)
    try:
        yield handler
    finally:
        # None is a handler from C, such as faulthandler's, which Python cannot set again.
        signal.signal(signal.SIGBUS, signal.SIG_DFL if before is None else before)


def _map_zeros(address: int, length: int) -> None:
    # PyDLL keeps the GIL during the call, so no other Python thread can unmap the block.
    call: Any = ctypes.PyDLL(None).mmap
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    call.restype = ctypes.c_void_p
    call(address, length, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)
