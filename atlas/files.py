"""Files read within a bound, and files written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
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
        raise UsageError(f"{what} {path}: cannot be read: {reason(error)}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {path}: byte {error.start} is not UTF-8") from None
    except ValueError:  # a null byte, or a surrogate that the file system cannot encode
        raise UsageError(f"{what} {str(path)!r} is not a path") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file through a temporary one in the same folder, renamed at the end.

    A file that is already there keeps its permissions. A link is followed: the file it points to is replaced and the link
    stays; a link that points to nothing is refused, because the file would appear in a place that nobody named. The file and its
    folder are synchronised to disk, so that after a power cut there is the old file or the new one.

    Raises:
        UsageError: the folder cannot be written, or the text is not Unicode.
    """
    temporary = None
    try:
        data = text.encode("utf-8")
        target = path.resolve(strict=True) if path.is_symlink() else path
        mode = _mode(target)
        # The name does not contain the file's: a name of 255 bytes has no room for more.
        temporary = target.parent / f".atlas-{secrets.token_hex(8)}.tmp"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, target)
        temporary = None
        _synchronise(target.parent)
    except FileNotFoundError as error:
        why = "it is a link to a file that does not exist" if path.is_symlink() else error.strerror
        raise UsageError(f"{path}: cannot be written: {why}") from None
    except UnicodeEncodeError:
        raise UsageError(f"{path}: cannot be written: the text is not valid Unicode") from None
    except (OSError, RuntimeError) as error:  # a RuntimeError is how pathlib reports links in a circle
        raise UsageError(f"{path}: cannot be written: {reason(error)}") from None
    except ValueError:
        raise UsageError(f"{str(path)!r} is not a path") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def reason(error: Exception) -> str:
    """Why the system refused, in its own words; never the name of a Python class."""
    said = error.strerror if isinstance(error, OSError) else None
    return said or "links in a circle, or a name that the system does not accept"


def _mode(target: Path) -> int | None:
    """The permissions of the file that is replaced; None where there is none yet."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _synchronise(folder: Path) -> None:
    """Write the folder's entry to disk, on the systems where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
