"""What `--deep` finds, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atlas.checkpoint.findings import Finding, note, said, unreadable, warning
from atlas.checkpoint.header import Tensor
from atlas.errors import CheckpointError
from atlas.verification import words
from atlas.verification.deep.recorded import Recorded
from atlas.verification.deep.ties import Tie
from atlas.verification.deep.values import Values

_TITLES = {"md5": "MD5", "sha256": "SHA-256"}


def not_read(file: str, error: CheckpointError) -> Finding:
    """A file that could be read before, and not to its end."""
    message = said(error.message, error.hint)
    if error.code == "truncated":
        return Finding(code="truncated", file=file, message=message)
    return unreadable(code="header", file=file, message=message)


def other_bytes(file: str, digest: str, recorded: Recorded) -> Finding:
    """A hash that is not the recorded one."""
    title = _TITLES[recorded.algorithm]
    return Finding(
        code="hash",
        file=file,
        expected=recorded.digest,
        found=digest,
        message=f"{file}: the {title} of the file is {digest[:12]}…, expected {recorded.digest[:12]}… as recorded in "
        f"{recorded.where}: these are not the bytes that were published; download it again",
    )


MOST_ALONE = 4
"""Tensors with non-finite values that are a finding each; more have one cause, such as a training that diverged."""


def nonfinite(strange: Sequence[tuple[str, Tensor, Values]]) -> Iterator[Finding]:
    """Tensors with values that are no finite numbers."""
    groups = [[each] for each in strange] if len(strange) <= MOST_ALONE else [strange]
    for group in groups:
        file, tensor, values = group[0]
        nan, infinite = (
            sum(counts) for counts in zip(*((v.nan, v.infinite) for *_, v in group), strict=True)
        )
        kinds = " and ".join(
            f"{count:,} {kind}" for count, kind in ((nan, "NaN"), (infinite, "Inf")) if count
        )
        at = index(values.first or 0, tensor.shape)
        if len(group) == 1:
            what = f"{tensor.name} in {file}: {kinds} among {tensor.elements:,} values, the first at {words.written(at)}"
        else:
            names = words.together(each.name for _, each, _ in group)
            what = f"{names} ({words.tensors(len(group))}): {kinds} in all, the first in {tensor.name} at {words.written(at)}"
        yield Finding(
            code="nonfinite",
            tensor=tensor.name,
            file=file,
            found=at,
            count=nan + infinite,
            message=f"{what}; they were saved like that or damaged since: compare the file's hash, or take an earlier checkpoint",
        )


def index(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of an element that so many others lie before, the last dimension counting fastest."""
    found = []
    for length in reversed(shape):
        position, i = divmod(position, length)
        found.append(i)
    return tuple(reversed(found))


def zeros(zero: Sequence[tuple[str, Tensor]], matrices: int) -> Iterator[Finding]:
    """Matrices of zeros only: one finding for those that differ in their indices, and one where there is nothing else.

    Args:
        matrices: how many there are, zero or not.
    """
    if len(zero) == matrices > 1:
        file, tensor = zero[0]
        yield warning(
            code="zero",
            tensor=tensor.name,
            file=file,
            count=matrices,
            message=f"all {matrices:,} matrices hold zeros only: the files have their size, and were never filled",
        )
        return
    groups: dict[str, list[tuple[str, Tensor]]] = {}
    for file, tensor in zero:
        groups.setdefault(words.starred(tensor.name), []).append((file, tensor))
    for group in groups.values():
        file, tensor = group[0]
        many = f" ({words.tensors(len(group))})" if len(group) > 1 else ""
        yield warning(
            code="zero",
            tensor=tensor.name,
            file=file,
            count=len(group),
            message=f"{words.together(tensor.name for _, tensor in group)}{many}, {words.written(tensor.shape)}: zeros only; if they were not "
            "meant to be, they were never written",
        )


def tied(tie: Tie, differing: int, first: int | None) -> Finding | None:
    """Whether a copy is equal; None where it is, and belongs there.

    Args:
        differing: in how many elements they differ, by their bits.
        first: the first of them, where they were compared.
    """
    (file, copy), _ = tie.places[0]
    elements = sum(place.elements for (_, place), _ in tie.places)
    if tie.dtypes[0] != tie.dtypes[1]:
        differ = f"it is {tie.dtypes[0]}, and the other {tie.dtypes[1]}"
    elif first is not None:
        at = words.written(index(first, copy.shape))
        differ = f"{differing:,} of {elements:,} differ, the first at {at}"
    elif tie.redundant:
        size = sum(place.end - place.begin for (_, place), _ in tie.places)
        return note(
            code="redundant",
            tensor=tie.copy,
            file=file,
            message=f"{tie.copy} is stored, {size:,} bytes, although it is tied to {tie.original}: an equal copy, not counted",
        )
    else:
        return None
    return Finding(
        code="tied",
        tensor=tie.copy,
        file=file,
        message=f"{tie.copy} is stored with other values than {tie.original}, to which it is tied: {differ}; a loader keeps one "
        "of them, so either is lost",
    )


def unequal_replicas(
    file: str, other: str, tensor: Tensor, names: Sequence[str], differing: int, first: int | None
) -> Finding:
    """A device's copies that are not those of the first.

    Args:
        file, other: that device's file, and the first one's.
        tensor: the first of the copies, in which `differing` values differ, the first of them at `first`.
        names: of all that differ.
    """
    at = words.written(index(first or 0, tensor.shape))
    return Finding(
        code="duplicate",
        tensor=names[0],
        file=file,
        count=len(names),
        message=f"{words.together(names)} ({words.tensors(len(names))}), whole on every device: other values in {file} than in "
        f"{other}: of {names[0]} {differing:,} of {tensor.elements:,} differ, the first at {at}; the files are not of "
        "one checkpoint",
    )
