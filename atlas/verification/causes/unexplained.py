"""Tensors that no other cause explains: one finding for the same tensor of several layers."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, note
from atlas.verification import formatting
from atlas.verification.comparison import Comparison
from atlas.verification.formatting import shape_text

MOST_PATTERNS = 5
"""Groups of names that get a finding each; if there are more, the names are grouped by their first word, then all together."""


def missing(comparison: Comparison) -> Iterator[Finding]:
    """Declared tensors that are not stored."""
    groups: dict[int, list[str]] = {}
    for name, row in comparison.missing.items():
        groups.setdefault(id(row), []).append(name)
    if len(groups) > MOST_PATTERNS:
        names = list(comparison.missing)
        yield Finding(
            code="missing",
            tensor=names[0],
            count=len(names),
            message=f"{formatting.name_list(names)} are missing, {formatting.tensor_count(len(names))} in all; a loader would initialise "
            "them randomly: download or convert the checkpoint again",
        )
        return
    for names in groups.values():
        row = comparison.needed[names[0]]
        where = formatting.in_layers(map(comparison.layer, names))
        yield Finding(
            code="missing",
            tensor=names[0],
            expected=row.shape,
            count=len(names),
            message=f"{formatting.name_list(names)} is missing{where}, expected {shape_text(row.shape)}; a loader "
            "would initialise it randomly: download or convert the checkpoint again",
        )


def unexpected(comparison: Comparison) -> Iterator[Finding]:
    """Stored tensors that are not declared."""
    groups: dict[str, list[str]] = {}
    for name in comparison.unexpected:
        groups.setdefault(formatting.wildcard(name), []).append(name)
    if len(groups) > MOST_PATTERNS:
        groups = {}
        for name in comparison.unexpected:
            groups.setdefault(name.partition(".")[0], []).append(name)
    if len(groups) > MOST_PATTERNS:
        groups = {"": list(comparison.unexpected)}
    for names in groups.values():
        first = comparison.unexpected[names[0]]
        many = f" ({formatting.tensor_count(len(names))})" if len(names) > 1 else ""
        yield Finding(
            code="unexpected",
            tensor=names[0],
            file=comparison.inventory.file_of(first),
            found=first.shape,
            count=len(names),
            message=f"{formatting.name_list(names, 2)}{many}, {shape_text(first.shape)} {first.dtype}: not declared",
        )


def buffers(comparison: Comparison) -> Iterator[Finding]:
    """Tables and masks that old files store and loaders compute anew."""
    names = list(comparison.buffers)
    if names:
        yield note(
            code="buffer",
            tensor=names[0],
            count=len(names),
            message=f"{formatting.name_list(names)} ({formatting.tensor_count(len(names))}): old buffers, not counted; loaders "
            "compute them anew",
        )


def apart(comparison: Comparison) -> Iterator[Finding]:
    """Tensors that the described model does not use, summed: of multi-token prediction, of a multimodal model's other parts."""
    for what, tensors in comparison.apart.items():
        first = next(iter(tensors.values()))
        elements = sum(tensor.elements for tensor in tensors.values())
        yield note(
            code="apart",
            tensor=first.name,
            file=comparison.inventory.file_of(first),
            found=elements,
            count=len(tensors),
            message=f"{formatting.tensor_count(len(tensors))} with {elements:,} parameters, such as {first.name}: {what}; only "
            "their headers were checked",
        )
