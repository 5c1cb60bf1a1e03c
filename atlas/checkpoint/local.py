"""A PATH on the command line as a store and what was asked for in it: a folder, an index, or one weight file."""

from __future__ import annotations

from pathlib import Path

from atlas.checkpoint.contents import CONFIGURATIONS
from atlas.checkpoint.store import Folder
from atlas.errors import CheckpointError


def at(path: Path) -> tuple[Folder, str | None]:
    """The folder a path is or lies in, and the file's name where it is one.

    Raises:
        CheckpointError: there is nothing, or no checkpoint: a configuration, the root of a cached repository.
    """
    try:
        if path.is_dir():
            if path.name.startswith("models--") and (path / "snapshots").is_dir():
                raise CheckpointError(
                    f"{path} is a repository's place in the Hub cache",
                    hint="give a folder under its snapshots/",
                )
            return _folder(path), None
        if not path.exists():
            what = "is a link that leads nowhere" if path.is_symlink() else "no such file or folder"
            raise CheckpointError(
                f"{path}: {what}", hint="a downloaded model is a folder with .safetensors files"
            )
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:  # a null byte
        raise CheckpointError(f"{str(path)!r} is not a path") from None
    except RuntimeError:  # as Python 3.11 and 3.12 put it
        raise CheckpointError(f"{path}: is a link in a circle") from None
    if path.name in CONFIGURATIONS:
        raise CheckpointError(
            f"{path} is a configuration, not weights",
            hint="give the folder that holds both, a weight file or an index",
        )
    return _folder(path.parent), path.name


def _folder(path: Path) -> Folder:
    """A folder as a store; a snapshot in the Hub cache is known by where it lies."""
    here = path.absolute()
    if here.parent.name == "snapshots" and here.parent.parent.name.startswith("models--"):
        return Folder(path, kind="cache", revision=here.name)
    return Folder(path)
