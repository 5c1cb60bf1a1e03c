"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from atlas.errors import UsageError


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
