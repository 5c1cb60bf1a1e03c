"""The files of a checkpoint: a folder on disk, or a repository on the Hub, behind one interface.

The interface is small, so the same code checks both: the files and their sizes, the text of a small file, and the headers
of weight files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from atlas.checkpoint.header import Examined, examine_file
from atlas.errors import CheckpointError
from atlas.files import read_regular

MOST_TEXT_BYTES = 64 * 2**20
"""Limit for a configuration or an index; far larger than any real one."""

BLOB = "the name of its blob in the local Hub cache"
"""Where a hash comes from: the name of the blob."""


class Store(Protocol):
    """A checkpoint's files."""

    @property
    def kind(self) -> str:
        """`folder`, `cache` (a snapshot in the local Hub cache) or `hub`."""
        ...

    @property
    def location(self) -> str:
        """The path, or the repository's id."""
        ...

    @property
    def revision(self) -> str | None:
        """The commit, where the files have one."""
        ...

    @property
    def requests(self) -> int:
        """Requests sent so far, over the network."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes of files received so far, over the network."""
        ...

    def files(self) -> Mapping[str, int | None]:
        """Name relative to the store -> size in bytes; None for a broken link."""
        ...

    def below(self, names: Iterable[str]) -> Mapping[str, int | None]:
        """The sizes of files in subfolders, as from `files`; an index may name some."""
        ...

    def text(self, name: str) -> bytes:
        """A small file's bytes.

        Raises:
            CheckpointError: it does not exist, cannot be read or is too long.
        """
        ...

    def examine(self, names: Iterable[str]) -> Iterator[tuple[str, Examined]]:
        """Each weight file's header and faults, in any order."""
        ...

    def hashes(self) -> Mapping[str, str]:
        """File -> its SHA-256, where the Hub records one; nothing is read for it."""
        ...


class Folder:
    """A folder on disk; files in its subfolders are read only where an index names them.

    Links are followed, since the Hub cache consists of them. Only regular files are read, up to a size limit.
    """

    kind = "folder"
    requests = 0
    bytes_read = 0

    def __init__(self, path: Path, *, kind: str = "folder", revision: str | None = None) -> None:
        self.path = path
        self.kind = kind
        self.location = str(path)
        self.revision = revision

    def files(self) -> Mapping[str, int | None]:
        try:
            with os.scandir(self.path) as entries:
                found = sorted(
                    (entry.name, entry) for entry in entries if entry.is_symlink() or not entry.is_dir()
                )
        except OSError as error:
            raise CheckpointError(f"{self.path}: cannot be read: {error.strerror}") from None
        return {name: self._size(entry) for name, entry in found}

    def below(self, names: Iterable[str]) -> Mapping[str, int | None]:
        found: dict[str, int | None] = {}
        for name in names:
            path = f"{self.location}/{name}"
            try:
                status: os.stat_result | None = os.lstat(path)
            except (OSError, ValueError):  # not there, or no name for a file
                continue
            if status and stat.S_ISLNK(status.st_mode):
                try:
                    status = os.stat(path)
                except OSError:  # a broken link, or one that leads to itself
                    status = None
            if status is None or not stat.S_ISDIR(status.st_mode):
                found[name] = status.st_size if status else None
        return found

    @staticmethod
    def _size(entry: os.DirEntry[str]) -> int | None:
        try:
            return entry.stat().st_size
        except OSError:
            return None

    def text(self, name: str) -> bytes:
        try:
            return read_regular(self.path / name, most=MOST_TEXT_BYTES, error=CheckpointError)
        except CheckpointError as error:
            raise CheckpointError(error.message, hint=error.hint, code="config") from None

    def hashes(self) -> Mapping[str, str]:
        return {}

    def examine(self, names: Iterable[str]) -> Iterator[tuple[str, Examined]]:
        for name in names:
            yield name, examine_file(f"{self.location}/{name}")
