"""Texts read within a bound, and files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from atlas.errors import UsageError

MOST_TEXT_BYTES = 64 * 2**20
"""Of a text a user hands over: far beyond any, and soon reached by what never ends."""


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
