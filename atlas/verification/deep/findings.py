"""The findings of `--deep`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atlas.checkpoint.findings import Finding, note, said, unreadable, warning
from atlas.checkpoint.header import Tensor
from atlas.errors import CheckpointError
from atlas.verification import formatting
from atlas.verification.deep.copies import Tie
from atlas.verification.deep.recorded import Recorded
from atlas.verification.deep.values import Values

_TITLES = {"md5": "MD5", "sha256": "SHA-256"}


def not_read(file: str, error: CheckpointError) -> Finding:
    """A file that could not be read to its end."""
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
        f"{recorded.where}: the file's content is not the recorded one; download it again",
    )


MOST_ALONE = 4
"""Tensors with non-finite values that get a finding each; more have one cause, such as a training that diverged."""


def nonfinite(found: Sequence[tuple[str, Tensor, Values]]) -> Iterator[Finding]:
    """Tensors with values that are NaN or infinite."""
    groups = [[each] for each in found] if len(found) <= MOST_ALONE else [found]
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
            what = f"{tensor.name} in {file}: {kinds} among {tensor.elements:,} values, the first at {formatting.shape_text(at)}"
        else:
            names = formatting.name_list(each.name for _, each, _ in group)
            what = f"{names} ({formatting.tensor_count(len(group))}): {kinds} in all, the first in {tensor.name} at {formatting.shape_text(at)}"
        yield Finding(
            code="nonfinite",
            tensor=tensor.name,
            file=file,
            found=at,
            count=nan + infinite,
            message=f"{what}; they were saved like this or damaged later: compare the file's hash, or use an earlier checkpoint",
        )


def index(position: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index of the element at a position, the last dimension counting fastest."""
    found = []
    for length in reversed(shape):
        position, i = divmod(position, length)
        found.append(i)
    return tuple(reversed(found))


def zeros(zero: Sequence[tuple[str, Tensor]], matrices: int) -> Iterator[Finding]:
    """Matrices of zeros only: one finding for those that differ in their indices only, and one if all matrices are zero.

    Args:
        matrices: the number of matrices, zero or not.
    """
    if len(zero) == matrices > 1:
        file, tensor = zero[0]
        yield warning(
            code="zero",
            tensor=tensor.name,
            file=file,
            count=matrices,
            message=f"all {matrices:,} matrices are zero: the files have the right size, but no values were written",
        )
        return
    groups: dict[str, list[tuple[str, Tensor]]] = {}
    for file, tensor in zero:
        groups.setdefault(formatting.wildcard(tensor.name), []).append((file, tensor))
    for group in groups.values():
        file, tensor = group[0]
        many = f" ({formatting.tensor_count(len(group))})" if len(group) > 1 else ""
        yield warning(
            code="zero",
            tensor=tensor.name,
            file=file,
            count=len(group),
            message=f"{formatting.name_list(tensor.name for _, tensor in group)}{many}, {formatting.shape_text(tensor.shape)}: all values are zero; unless "
            "that is intended, they were never written",
        )


def tied(tie: Tie, differing: int, first: int | None) -> Finding | None:
    """A copy that differs, or that is equal and redundant; None if it is equal and should be stored.

    Args:
        differing: the number of elements whose bits differ.
        first: the first of them, if the two were compared.
    """
    (file, copy), _ = tie.places[0]
    elements = sum(place.elements for (_, place), _ in tie.places)
    if tie.dtypes[0] != tie.dtypes[1]:
        differ = f"it is {tie.dtypes[0]}, the other {tie.dtypes[1]}"
    elif first is not None:
        at = formatting.shape_text(index(first, copy.shape))
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
        message=f"{tie.copy} is stored with other values than {tie.original}, to which it is tied: {differ}; a loader keeps only "
        "one of them",
    )


def unequal_replicas(
    file: str, other: str, tensor: Tensor, names: Sequence[str], differing: int, first: int | None
) -> Finding:
    """A device's copies that differ from the first device's.

    Args:
        file, other: that device's file, and the first device's.
        tensor: the first such copy, of which `differing` values differ, the first at position `first`.
        names: the names of all copies that differ.
    """
    at = formatting.shape_text(index(first or 0, tensor.shape))
    return Finding(
        code="duplicate",
        tensor=names[0],
        file=file,
        count=len(names),
        message=f"{formatting.name_list(names)} ({formatting.tensor_count(len(names))}) should be equal on every device, but {file} "
        f"has other values than {other}: {differing:,} of {tensor.elements:,} in {names[0]} differ, the first at {at}; the "
        "files are from different checkpoints",
    )
