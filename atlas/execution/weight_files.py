"""Which tensors a checkpoint holds and in which files, and reads that refuse a file that has changed since."""

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
    """A file as it was when its header was read. A read is refused if the file is another one by then.

    Attributes:
        inode: device and inode.
        modified_ns: the time of its last modification.
        bytes: its size.
    """

    path: Path
    inode: tuple[int, int]
    modified_ns: int
    bytes: int

    def read(self, begin: int, into: memoryview) -> None:
        """Fill a buffer with the file's bytes from `begin` on.

        Raises:
            CheckpointError: the file cannot be read (`header`), has been truncated (`truncated`), or has been modified or
                replaced (`changed`).
        """
        with self.opened() as file:
            try:
                file.seek(begin)
                done = 0
                while done < len(into):
                    count = file.readinto(into[done:])
                    if not count:
                        raise self.truncated()
                    done += count
            except OSError as error:
                raise self._unreadable(error) from None
            self.require_same(file)

    def opened(self) -> io.FileIO:
        """The file, open for reading, if it has not changed.

        Raises:
            CheckpointError: see `read`.
        """
        try:
            # Opening a FIFO in its place must not block.
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
        """Refuse an open file that has changed.

        Raises:
            CheckpointError: see `read`.
        """
        found = os.fstat(file.fileno())
        if found.st_size < self.bytes:
            raise self.truncated()
        now = ((found.st_dev, found.st_ino), found.st_mtime_ns, found.st_size)
        if now != (self.inode, self.modified_ns, self.bytes):
            raise self._changed("modified or replaced", "changed")

    def truncated(self) -> CheckpointError:
        """The error for a file that is shorter than before."""
        return self._changed("truncated", "truncated")

    def _changed(self, how: str, code: str) -> CheckpointError:
        return CheckpointError(
            f"{self.path}: was {how} while the model ran",
            hint="run it again when no other program writes to the file",
            code=code,
        )

    def _unreadable(self, error: OSError) -> CheckpointError:
        return CheckpointError(f"{self.path}: cannot be read: {error.strerror or error}", code="header")


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor, or one device's share of it, in a file. Its data starts at byte `begin` of the file."""

    file: File
    begin: int
    bytes: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)


def find_pieces(path: Path) -> dict[str, list[Piece]]:
    """Tensor name -> its pieces in the order of the files: one piece, or one per model-parallel file.

    Args:
        path: a checkpoint's folder, one of its files, or its index.

    Raises:
        CheckpointError: with the code of the first finding in the files.
    """
    folder, only = local.at(path)
    found = inventory.take(folder, only)
    for finding in found.findings:
        if finding.severity == "error":
            raise CheckpointError(
                finding.message, hint="`atlas verify` lists everything that is wrong", code=finding.code
            )
    pieces: dict[str, list[Piece]] = {}
    for name, header in found.headers.items():
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
            pieces.setdefault(key, []).append(piece)
    return pieces
