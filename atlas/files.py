"""Files read up to a size limit, and files written atomically."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from atlas.errors import AtlasError, UsageError

MOST_TEXT_BYTES = 64 * 2**20
"""The size limit of a text file or pipe, such as a prompt: far more than any has, and soon reached by an endless one."""


def read_regular(
    path: Path, *, most: int = MOST_TEXT_BYTES, what: str = "", error: type[AtlasError] = UsageError
) -> bytes:
    """The bytes of a regular file from an untrusted source.

    A FIFO, a device or a folder is refused before it is read: opening never blocks, and at most `most` bytes are read.

    Args:
        most: bytes; a longer file is refused.
        what: the option or the key that names the file, for error messages.
        error: the class to raise.

    Raises:
        AtlasError: of that class: the file does not exist, is not regular or too long, or its path is invalid.
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
        raise error(f"{where}: larger than {most:,} bytes, the limit for such a file")
    return data


def _kind(mode: int) -> str:
    """The kind of a path that is not a regular file."""
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
        what: the option that names it, for error messages.

    Raises:
        UsageError: it cannot be read, is not UTF-8, or is too long.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_TEXT_BYTES + 1)
        if len(data) > MOST_TEXT_BYTES:
            raise UsageError(
                f"{what} {path}: larger than {MOST_TEXT_BYTES:,} bytes, the limit for such a text"
            )
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{what} {path}: cannot be read: {reason(error)}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{what} {path}: byte {error.start} is not UTF-8") from None
    except ValueError:  # a null byte, or a surrogate that the file system cannot encode
        raise UsageError(f"{what} {str(path)!r} is not a path") from None


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: to a temporary file in the same folder, which is then renamed.

    An existing file keeps its permissions. A symbolic link is followed: its target is replaced and the link stays. A broken
    link is refused, because the file would appear in a place that the user did not name. The file and its folder are synced
    to disk, so that a power cut leaves either the old file or the new one.

    Raises:
        UsageError: the folder cannot be written, or the text is not Unicode.
    """
    temporary = None
    try:
        data = text.encode("utf-8")
        target = path.resolve(strict=True) if path.is_symlink() else path
        mode = _mode(target)
        # The name is not derived from the file's, which may already have the 255 bytes that a file system allows.
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
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for a loop of symbolic links
        raise UsageError(f"{path}: cannot be written: {reason(error)}") from None
    except ValueError:
        raise UsageError(f"{str(path)!r} is not a path") from None
    finally:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def reason(error: Exception) -> str:
    """The reason of a failed system call, in the system's words."""
    words = error.strerror if isinstance(error, OSError) else None
    return words or "a loop of symbolic links, or a path that the system does not accept"


def _mode(target: Path) -> int | None:
    """The permissions of the file that is replaced; None if there is none yet."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return None


def _synchronise(folder: Path) -> None:
    """Sync the folder to disk, on systems that can open a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
