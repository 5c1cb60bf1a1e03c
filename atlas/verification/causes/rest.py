"""What no other cause explains, listed as it is: once for the same tensor of several layers."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, note
from atlas.verification import words
from atlas.verification.case import Case
from atlas.verification.words import written

MOST_PATTERNS = 5
"""Of names that differ by more than their indices, before they are told apart less finely, and at last not at all."""


def missing(case: Case) -> Iterator[Finding]:
    """Declared tensors that are not there."""
    groups: dict[int, list[str]] = {}
    for name, row in case.missing.items():
        groups.setdefault(id(row), []).append(name)
    if len(groups) > MOST_PATTERNS:
        names = list(case.missing)
        yield Finding(
            code="missing",
            tensor=names[0],
            count=len(names),
            message=f"{words.together(names)} are missing, {words.tensors(len(names))} in all; a loader would fill them with "
            "random numbers: download or convert the checkpoint again",
        )
        return
    for names in groups.values():
        row = case.needed[names[0]]
        where = words.in_layers(map(case.layer, names))
        yield Finding(
            code="missing",
            tensor=names[0],
            expected=row.shape,
            count=len(names),
            message=f"{words.together(names)} is missing{where}, expected {written(row.shape)}; a loader "
            "would fill it with random numbers: download or convert the checkpoint again",
        )


def unexpected(case: Case) -> Iterator[Finding]:
    """Tensors that the description knows nothing of."""
    groups: dict[str, list[str]] = {}
    for name in case.unexpected:
        groups.setdefault(words.starred(name), []).append(name)
    if len(groups) > MOST_PATTERNS:
        groups = {}
        for name in case.unexpected:
            groups.setdefault(name.partition(".")[0], []).append(name)
    if len(groups) > MOST_PATTERNS:
        groups = {"": list(case.unexpected)}
    for names in groups.values():
        first = case.unexpected[names[0]]
        many = f" ({words.tensors(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="unexpected",
            tensor=names[0],
            file=case.inventory.file_of(first),
            found=first.shape,
            count=len(names),
            message=f"{words.together(names, 2)}{many}, {written(first.shape)} {first.dtype}: no such tensor is declared",
        )


def buffers(case: Case) -> Iterator[Finding]:
    """Tables of the rotation, as old files store them."""
    names = list(case.buffers)
    if names:
        yield note(
            code="buffer",
            tensor=names[0],
            count=len(names),
            message=f"{words.together(names)} ({words.tensors(len(names))}): old rotary buffers, not counted; what reads "
            "the weights computes them anew",
        )
