"""Turns a PATH of the command line into a store and the requested file: a folder, an index, or one weight file."""

from __future__ import annotations

from pathlib import Path

from atlas.checkpoint.contents import CONFIGURATIONS
from atlas.checkpoint.store import Folder
from atlas.errors import CheckpointError


def at(path: Path) -> tuple[Folder, str | None]:
    """The folder of a path, and the file's name where the path is a file.

    Raises:
        CheckpointError: the path does not exist or is no checkpoint: a configuration, the root of a cached repository.
    """
    try:
        if path.is_dir():
            if path.name.startswith("models--") and (path / "snapshots").is_dir():
                raise CheckpointError(
                    f"{path} is the root of a repository in the Hub cache",
                    hint="give a folder under its snapshots/",
                )
            return _folder(path), None
        if not path.exists():
            what = "is a broken link" if path.is_symlink() else "no such file or folder"
            raise CheckpointError(
                f"{path}: {what}", hint="a downloaded model is a folder with .safetensors files"
            )
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # a null byte
        raise CheckpointError(f"{str(path)!r} is not a path") from None
    except RuntimeError:  # as Python 3.11 and 3.12 put it
        raise CheckpointError(f"{path}: is a link that leads to itself") from None
    if path.name in CONFIGURATIONS:
        raise CheckpointError(
            f"{path} is a configuration, not weights",
            hint="give the folder that holds both, a weight file or an index",
        )
    return _folder(path.parent), path.name


def _folder(path: Path) -> Folder:
    """A folder as a store; a snapshot of the Hub cache is recognised by its path."""
    here = path.absolute()
    if here.parent.name == "snapshots" and here.parent.parent.name.startswith("models--"):
        return Folder(path, kind="cache", revision=here.name)
    return Folder(path)
