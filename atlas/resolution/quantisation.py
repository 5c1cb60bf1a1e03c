"""Recognises checkpoints whose weights are stored quantised, from the tables in `specs/quantisations/`.

How such weights are counted is not described yet. Recognising them keeps them from being sized as 16-bit.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from atlas.errors import AtlasError
from atlas.resolution.model import Gap
from atlas.spec.library import Library

_COUNTED = "parameters are counted as before quantisation"
_UNQUANTISED: tuple[object, ...] = (None, False, "", [], {})


def declared(config: Mapping[str, Any], library: Library) -> list[Gap]:
    """A gap for each key of a configuration that declares quantised weights."""
    return [
        Gap(
            f"the weights are stored quantised ({key}), which is not described; {_COUNTED}",
            frozenset(each.affects),
        )
        for each in library.quantisations()
        for key in each.keys
        if config.get(key) not in _UNQUANTISED
    ]


def keys(library: Library) -> set[str]:
    """The configuration keys that declare quantised weights."""
    return {key for each in library.quantisations() for key in each.keys}


def declared_by_files(names: Collection[str], library: Library) -> list[Gap]:
    """A gap for each of these file names, next to a configuration, that declares quantised weights."""
    return [
        Gap(
            f"the weights are stored quantised ({name} next to the configuration), which is not described; "
            f"{_COUNTED}",
            frozenset(each.affects),
        )
        for each in library.quantisations()
        for name in each.files
        if name in names
    ]


def shown_by_dtypes(dtypes: Collection[str], where: str, library: Library) -> list[Gap]:
    """A gap if matrices are stored in a dtype of quantised ones.

    Args:
        dtypes: those of the stored matrices.
        where: the file that they are in.
    """
    return [
        Gap(
            f"the weights are stored quantised ({', '.join(found)} in {where}), although the configuration declares no "
            f"quantisation; {_COUNTED}",
            frozenset(each.affects),
        )
        for each in library.quantisations()
        if (found := sorted(set(dtypes).intersection(each.dtypes)))
    ]


def in_folder(folder: Path, library: Library) -> list[Gap]:
    """The gaps for what is stored next to a configuration that declares nothing itself.

    One safetensors header is read, that of the first file by name: quantised checkpoints have quantised matrices in each
    shard. A file that cannot be read is left to `atlas verify`.
    """
    from atlas.checkpoint.header import read_header

    files = {name for each in library.quantisations() for name in each.files}
    if found := declared_by_files({name for name in files if os.path.isfile(folder / name)}, library):
        return found
    first = _first_weights(folder)
    if first is None:
        return []
    try:
        header = read_header(first)
    except AtlasError:
        return []
    matrices = {tensor.dtype for tensor in header.tensors.values() if len(tensor.shape) > 1}
    return shown_by_dtypes(matrices, first.name, library)


def _first_weights(folder: Path) -> Path | None:
    try:
        with os.scandir(folder) as entries:
            names = (
                entry.name for entry in entries if entry.name.endswith(".safetensors") and entry.is_file()
            )
            first = min(names, default=None)
    except OSError:
        return None
    return None if first is None else folder / first
