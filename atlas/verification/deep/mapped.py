"""A block of a file as memory: its pages as the system has them, without a copy.

Mapping reads what is in the page cache half as fast again as `read` into a buffer does (`benchmarks/deep.py`). The price is
that a file which somebody cuts short meanwhile, or a disk that fails, is no error that a call returns: the thread that
touches the page gets SIGBUS, which ends the process. So while blocks are read, SIGBUS is caught, which lets that thread try
the page again and again, until the thread that waits for them all looks after it: it lays zeros over a block that has no
pages any more, and the block is reported as unreadable. It is not left to the signal's handler: that Python runs it in time
while a thread gets the signal a million times a second is luck.

Two things follow. Only the main thread can catch signals, so a check in another one reads and does not map. And a thread that
hangs must not hold the interpreter's lock, which NumPy keeps over a few hundred numbers and hashlib over two thousand bytes:
what is that small is read too.
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
"""Less is read: four thousand of the widest numbers, with a margin over what locks the interpreter."""

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


class Stamp(NamedTuple):
    """What tells a file from another, or from itself before it was written to."""

    device: int
    inode: int
    changed_ns: int
    bytes: int


def stamp(path: Path, file_bytes: int) -> Stamp | None:
    """A file's, with the size that it had when its header was read; None where there is no such file any more."""
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
        where: its name, for the messages.
        mapped: whether blocks may be mapped, which is for `surviving` to allow.
        stamp: what it must be at every block, from `stamp`: else blocks of two files would pass for one.
    """

    path: Path
    where: str
    mapped: bool = False
    stamp: Stamp | None = None

    @contextmanager
    def block(self, begin: int, end: int) -> Iterator[Bytes]:
        """The bytes from `begin` to `end`; those mapped are let go with the last array that shows them.

        Raises:
            CheckpointError: the file cannot be read or is another one by now (`header`), or is cut short (`truncated`).
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
                raise self._cut_short(end) from None
            except OSError as error:
                raise self._unreadable(error.strerror) from None
            self._require_same(file, end)
            view = _View(file.fileno(), np.frombuffer(pages, np.uint8), end)
            _views.append(view)
            try:
                yield view.pages[before:]
            finally:
                _views.remove(view)
            if view.is_cut():  # seen without SIGBUS too: what is left of its last page reads as zeros
                raise self._cut_short(end)
            self._require_same(file, end)
        if view.lost:
            raise self._unreadable("the disk failed (SIGBUS)")

    def maps(self, size: int) -> bool:
        """Whether a block of so many bytes is mapped."""
        return self.mapped and size >= LEAST_MAPPED_BYTES

    def copy(self, begin: int, end: int) -> Bytes:
        """The bytes from `begin` to `end`, in memory of their own.

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
                        raise self._cut_short(end)
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
            raise self._cut_short(end)
        if found != self.stamp:
            raise CheckpointError(
                f"{self.where}: was written to or replaced while it was read",
                hint="check it again when nothing writes to it any more",
                code="header",
            )

    def _open(self) -> io.FileIO:
        # Not waiting: in place of the file there may be a FIFO by now.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            file = io.FileIO(os.open(self.path, flags))
        except OSError as error:
            raise self._unreadable(error.strerror) from None
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise self._unreadable("it is no regular file any more")
        return file

    def _cut_short(self, end: int) -> CheckpointError:
        return CheckpointError(
            f"{self.where}: was cut short while it was read: it ends before byte {end:,} by now",
            hint="check it again when nothing writes to it any more",
            code="truncated",
        )

    def _unreadable(self, reason: str | None) -> CheckpointError:
        return CheckpointError(f"{self.where}: the file cannot be read: {reason}", code="header")


class Rescue:
    """What lets threads go on that hang at pages which are not there; to be called some times a second."""

    def __init__(self) -> None:
        self._signalled = False
        self._in_vain = 0

    def signalled(self, number: int, frame: object) -> None:
        self._signalled = True

    def __call__(self) -> None:
        views = [view for view in list(_views) if not view.lost]
        lost = [view for view in views if view.is_cut()]
        if lost:
            self._in_vain = 0
        elif self._signalled:
            self._in_vain += 1
            # Once may be what was left of a signal that has been dealt with; again, and it is the disk, who knows under which.
            lost = views if self._in_vain > 1 else []
        self._signalled = False
        for view in lost:
            view.lost = True
            _map_zeros(view.pages.ctypes.data, view.pages.nbytes)


def survives() -> bool:
    """Whether `surviving` can do what it is for: only the main thread can; on Windows nobody can cut a mapped file short."""
    return not hasattr(signal, "SIGBUS") or threading.current_thread() is threading.main_thread()


@contextmanager
def surviving() -> Iterator[Rescue]:
    """Read blocks meanwhile, and live on where the pages of one are gone."""
    rescue = Rescue()
    if not survives() or not hasattr(signal, "SIGBUS"):
        yield rescue
        return
    before = signal.signal(signal.SIGBUS, rescue.signalled)
    try:
        yield rescue
    finally:
        # None is a handler from C, such as faulthandler's, which Python cannot set again.
        signal.signal(signal.SIGBUS, signal.SIG_DFL if before is None else before)


def _map_zeros(address: int, length: int) -> None:
    # PyDLL lets no other Python thread run during the call, and so none that would unmap the block.
    call: Any = ctypes.PyDLL(None).mmap
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    call.restype = ctypes.c_void_p
    call(address, length, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED, -1, 0)
