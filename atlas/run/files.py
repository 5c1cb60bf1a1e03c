"""Which tensors a checkpoint holds, in which files: what `atlas.checkpoint` finds, for who wants a sound one or none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint import inventory, local
from atlas.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Piece:
    """A tensor as one file holds it."""

    file: Path
    shape: tuple[int, ...]
    dtype: str


def stored(path: Path) -> dict[str, list[Piece]]:
    """Name -> the tensor's pieces in the order of the files: one, unless several devices' files each hold a share.

    Args:
        path: a checkpoint's folder, one of its files, or its index.

    Raises:
        CheckpointError: with the code of the first thing that is wrong with the files.
    """
    folder, only = local.at(path)
    held = inventory.take(folder, only)
    for finding in held.findings:
        if finding.severity == "error":
            raise CheckpointError(
                finding.message, hint="`atlas verify` lists all that is wrong", code=finding.code
            )
    found: dict[str, list[Piece]] = {}
    for file, header in held.headers.items():
        for name, tensor in header.tensors.items():
            found.setdefault(name, []).append(Piece(folder.path / file, tensor.shape, tensor.dtype))
    return found
