"""Files read within a bound, and files written whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from atlas.errors import AtlasError, UsageError

MOST_TEXT_BYTES = 64 * 2**20
"""Of a text a user hands over: far beyond any, and soon reached by what never ends."""


def read_regular(
    path: Path, *, most: int = MOST_TEXT_BYTES, what: str = "", error: type[AtlasError] = UsageError
) -> bytes:
    """The bytes of a regular file that somebody else may have written.

    A FIFO, a device or a folder is refused before it is read: opening never blocks, and no more than `most` bytes are held.

    Args:
        most: bytes; a longer file is refused.
        what: the option or the key that names the file, for messages.
        error: the class to raise.

    Raises:
        AtlasError: of that class: not there, not a regular file, too long, a name the system does not take, a link in a circle.
    """
    where = f"{what} {path}".strip()
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise error(f"{where}: expected a regular file, found {_kind(status.st_mode)}")
            data = file.read(most + 1)
    except OSError as failure:
        raise error(f"{where}: cannot be read: {failure.strerror or failure}") from None
    except ValueError:  # a null byte, or a surrogate that the file system cannot encode
        raise error(f"{where!r} is not a path") from None
    if len(data) > most:
        raise error(f"{where}: larger than {most:,} bytes, the most that is read of such a file")
    return data


def _kind(mode: int) -> str:
    """What a path that is no regular file is."""
    kinds = {
        stat.S_ISDIR: "a folder",
        stat.S_ISFIFO: "a FIFO",
        stat.S_ISSOCK: "a socket",
        stat.S_ISCHR: "a device",
        stat.S_ISBLK: "a device",
    }
    return next((name for test, name in kinds.items() if test(mode)), "another kind of file")


def read_text(path: Path, what: str) -> str:
    """A text file, or a pipe, as UTF-8.

    Args:
        what: the option that names it, for messages.

    Raises:
        UsageError: it cannot be read, is not UTF-8, or does not end.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_TEXT_BYTES + 1)
        if len(data) > MOST_TEXT_BYTES:
            raise UsageError(f"{what} {path}: more than {MOST_TEXT_BYTES:,} bytes, which no such text is")
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{what} {path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {path}: byte {error.start} is not UTF-8") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file through a temporary one in the same folder, renamed at the end.

    Raises:
        UsageError: the folder cannot be written.
    """
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


def _umask() -> int:
    """The process's umask: mkstemp makes files for their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
