"""Which tensors a checkpoint holds, in which files, and the reading of bytes from the very files whose headers were read."""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint import inventory, local
from atlas.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when its header was read; a read of any other file is refused.

    Attributes:
        inode: device and inode.
        changed_ns: when it was last written to.
        bytes: its size.
    """

    path: Path
    inode: tuple[int, int]
    changed_ns: int
    bytes: int

    def read(self, begin: int, into: memoryview) -> None:
        """Fill memory with the file's bytes from `begin` on.

        Raises:
            CheckpointError: the file cannot be read (`header`), is cut short by now (`truncated`), or is another file or
                written to by now (`changed`).
        """
        with self.opened() as file:
            try:
                file.seek(begin)
                done = 0
                while done < len(into):
                    count = file.readinto(into[done:])
                    if not count:
                        raise self.cut_short()
                    done += count
            except OSError as error:
                raise self._unreadable(error) from None
            self.require_same(file)

    def opened(self) -> io.FileIO:
        """The file, open for reading, if it is what it was.

        Raises:
            CheckpointError: as `read`.
        """
        try:
            # Without waiting, as a FIFO in its place would have it.
            handle = os.open(
                self.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
            )
        except OSError as error:
            raise self._unreadable(error) from None
        file = io.FileIO(handle, "rb")
        try:
            self.require_same(file)
        except CheckpointError:
            file.close()
            raise
        return file

    def require_same(self, file: io.FileIO) -> None:
        """Refuse an open file that is not what it was.

        Raises:
            CheckpointError: as `read`.
        """
        found = os.fstat(file.fileno())
        if found.st_size < self.bytes:
            raise self.cut_short()
        now = ((found.st_dev, found.st_ino), found.st_mtime_ns, found.st_size)
        if now != (self.inode, self.changed_ns, self.bytes):
            raise self._changed("written to or replaced", "changed")

    def cut_short(self) -> CheckpointError:
        """The error for a file that has become shorter."""
        return self._changed("cut short", "truncated")

    def _changed(self, how: str, code: str) -> CheckpointError:
        return CheckpointError(
            f"{self.path}: was {how} while the model ran",
            hint="run it again when nothing writes to the file any more",
            code=code,
        )

    def _unreadable(self, error: OSError) -> CheckpointError:
        return CheckpointError(f"{self.path}: cannot be read: {error.strerror or error}", code="header")


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor as one file holds it, its data from byte `begin` of the file on."""

    file: File
    begin: int
    bytes: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def stored(path: Path) -> dict[str, list[Piece]]:
    """Name -> the tensor's pieces in the order of the files: one, unless several devices' files each hold a share.

    Args:
        path: a checkpoint's folder, one of its files, or its index.

    Raises:
        CheckpointError: with the code of the first thing that is wrong with the files.
    """
    folder, only = local.at(path)
    held = inventory.take(folder, only)
    for finding in held.findings:
        if finding.severity == "error":
            raise CheckpointError(
                finding.message, hint="`atlas verify` lists all that is wrong", code=finding.code
            )
    found: dict[str, list[Piece]] = {}
    for name, header in held.headers.items():
        place = folder.path / name
        try:
            status = os.stat(place)
        except OSError as error:
            raise CheckpointError(f"{place}: cannot be read: {error.strerror}", code="header") from None
        file = File(place, (status.st_dev, status.st_ino), status.st_mtime_ns, header.file_bytes)
        for key, tensor in header.tensors.items():
            piece = Piece(
                file, header.data_start + tensor.begin, tensor.end - tensor.begin, tensor.shape, tensor.dtype
            )
            found.setdefault(key, []).append(piece)
    return found
