"""The library of the built-in descriptions and of the further folders that a caller names (`--specs`, `specs=`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from atlas.errors import UsageError
from atlas.spec.library import PARTS, Library

PathLike = str | os.PathLike[str]
Folders = PathLike | Sequence[PathLike]
"""One folder, or several."""


def open_library(folders: Folders = ()) -> Library:
    """The built-in descriptions, and those of further folders.

    Raises:
        UsageError: a folder does not exist, cannot be read, or has no description files and so would have no effect.
    """
    paths = [Path(folder) for folder in ([folders] if isinstance(folders, str | os.PathLike) else folders)]
    for path in paths:
        _require_descriptions(path)
    return Library(*paths)


def _require_descriptions(folder: Path) -> None:
    try:
        names = set(os.listdir(folder))
    except FileNotFoundError:
        raise UsageError(f"--specs {folder}: no such folder") from None
    except OSError as error:
        raise UsageError(f"--specs {folder}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise UsageError(f"--specs {str(folder)!r} is not a path") from None
    if names.isdisjoint(PARTS):
        raise UsageError(
            f"--specs {folder}: the folder has no description files",
            hint=f"give the folder that has {', '.join(PARTS[:-1])} or {PARTS[-1]}",
        )
