"""Which files of a store are the model: the requested file, those that the index names, or by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from atlas.checkpoint import adapter, contents, index, loaders
from atlas.checkpoint.contents import Series
from atlas.checkpoint.findings import Finding, listing, note, said, unreadable
from atlas.checkpoint.index import Index
from atlas.checkpoint.store import Store
from atlas.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class Chosen:
    """The files that are the model.

    Attributes:
        index: the index that lists them, where there is one.
        outside: tensors in files that the index names and that were not requested.
        findings: an unreadable or stale index, shards without an index, and weights that are not the model's.
        bytes_read: those of the index.
        whole: a `model.safetensors` next to the index, which transformers opens instead of the shards.
    """

    series: Series
    index: Index | None = None
    outside: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    bytes_read: int = 0
    one_of_many: bool = False
    whole: str | None = None


def choose(store: Store, sizes: Mapping[str, int | None], only: str | None) -> Chosen | None:
    """Which files are the model; None where there is only an adapter.

    Args:
        sizes: every file of the store and its size.
        only: the one weight file, or the index, that was requested.

    Raises:
        CheckpointError: there are no safetensors weights.
    """
    alone = only if only is not None and not only.endswith(".json") else None
    name = only if only is not None and alone is None else contents.index_of(sizes)
    known, fault, bytes_read = _index(store, name)
    if alone is not None:
        return _alone(store, alone, known, bytes_read)
    series = Series(known.files()) if known else contents.series(contents.weights(sizes))
    stale: list[Finding] = []
    if known is not None and only is None:
        series, stale = _without_stale_index(store, sizes, known)
        known = None if stale else known
    others = contents.other_weights(sizes)
    if not series.files:
        if any(map(adapter.is_adapter, sizes)) and all(map(adapter.is_adapter, others)):
            return None
        raise fault or contents.refusal(store.location, sizes)
    if len(contents.other_weights(series.files)) == len(series.files):
        raise contents.refusal(store.location, series.files)
    findings = stale
    if fault is not None:
        findings.append(unreadable(code="index", file=name, message=said(fault.message, fault.hint)))
    elif known is None and not stale and len(series.files) + len(series.absent) > 1 and not series.shares:
        findings.append(loaders.without_index(store.location, series.files))
    weights = {*others, *(file for file in sizes if file.endswith(contents.SUFFIX))}
    whole = loaders.WHOLE if known and loaders.WHOLE in weights.difference(series.files) else None
    strays = sorted(weights.difference(series.files, [whole] if whole else []))
    if strays:
        findings.append(_stray(strays, sizes))
    return Chosen(series, known, findings=tuple(findings), bytes_read=bytes_read, whole=whole)


def _without_stale_index(
    store: Store, sizes: Mapping[str, int | None], known: Index
) -> tuple[Series, list[Finding]]:
    """The files of the model and, where the index is stale, the finding that reports it.

    It is stale where shards that it names are missing and other files hold every tensor that it lists.
    """
    indexed = Series(known.files())
    there = {name for name, size in sizes.items() if size is not None}
    below = [file for file in indexed.files if "/" in file]
    there.update(name for name, size in (store.below(below) if below else {}).items() if size is not None)
    missing = [file for file in indexed.files if file not in there]
    if not missing:
        return indexed, []
    unnamed = [name for name in contents.weights(sizes) if name in there and name not in indexed.files]
    others = contents.series(unnamed)
    if not others.files or others.absent or others.shares:
        return indexed, []
    headers = [found.header for _, found in store.examine(others.files)]
    stored = {name for header in headers if header for name in header.tensors}
    if not known.places.keys() <= stored:
        return indexed, []
    return others, [loaders.stale_index(known, store.location, missing, others.files)]


def _alone(store: Store, file: str, known: Index | None, bytes_read: int) -> Chosen | None:
    """One requested file: a model by itself, or one shard of an index, whose other shards are not checked."""
    if adapter.is_adapter(file):
        return None
    if contents.other_weights([file]):
        raise contents.refusal(f"{store.location}/{file}", [file])
    series = replace(contents.series([file]), absent=())
    if known is None or file not in known.files():
        numbered = re.fullmatch(r".*-of-0*(\d{1,6})\.safetensors", file)
        if numbered is None or int(numbered[1]) < 2:
            return Chosen(series)
        message = f"{file} alone was checked, one of {int(numbered[1]):,} by its name, and no index lists what is in the "
        message += "others: only its own tensors were checked"
        return Chosen(series, one_of_many=True, findings=(note(code="index", file=file, message=message),))
    outside = frozenset(name for name, place in known.places.items() if place != file)
    others = len(set(known.files())) - 1
    findings = [
        note(
            code="index",
            file=file,
            expected=others + 1,
            found=1,
            count=others,
            message=f"{file} alone was checked: {known.name} names {others:,} more, which were not read",
        )
    ]
    return Chosen(series, known, outside, tuple(findings if others else ()), bytes_read)


def _index(store: Store, name: str | None) -> tuple[Index | None, CheckpointError | None, int]:
    """The index or the reason why it cannot be read, and its length in bytes."""
    if name is None:
        return None, None, 0
    try:
        data = store.text(name)
        return index.parse(data, name, f"{store.location}/{name}"), None, len(data)
    except CheckpointError as error:
        return None, CheckpointError(error.message, hint=error.hint, code="index"), 0


def _stray(files: Sequence[str], sizes: Mapping[str, int | None]) -> Finding:
    size = sum(sizes[file] or 0 for file in files)
    what = "is another weight file" if len(files) == 1 else "are other weight files"
    return note(
        code="stray",
        file=files[0],
        count=len(files),
        message=f"{listing(files)} {what} next to the model's, {size:,} bytes, not counted",
    )
