"""Tied matrices: the second place need not be stored, a stored copy is unusual; an untied matrix must be stored."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, note, warning
from atlas.verification.comparison import Comparison
from atlas.verification.formatting import shape_text


def absent(comparison: Comparison) -> Iterator[Finding]:
    """The output matrix is missing, and the model does not tie it."""
    ties = comparison.graph.architecture.ties
    for name, row in list(comparison.missing.items()):
        other = ties.get(row.weights[0].id)
        if other is not None:
            key, source = comparison.description.key("tied"), comparison.description.source
            yield Finding(
                code="tied",
                tensor=name,
                expected=row.shape,
                message=f"{name} is missing, expected {shape_text(row.shape)}, and {source} does not tie it to "
                f"{_name(comparison, other)}: a loader initialises it randomly; if it should be tied, set {key} in the configuration",
            )
            comparison.explained([name])


def only_copy(comparison: Comparison) -> Iterator[Finding]:
    """Only the copy is stored: transformers uses it as the original."""
    for original, copy in comparison.stored_as_copy.items():
        yield warning(
            code="tied",
            tensor=original,
            file=comparison.inventory.file_of(comparison.found[original]),
            message=f"{copy} is stored instead of {original}, to which it is tied: it is counted as {original}, but a loader that "
            f"ignores tied copies finds no {original}; save it under that name",
        )


def copies(comparison: Comparison) -> Iterator[Finding]:
    """A stored copy."""
    for name, tensor in comparison.copies.items():
        other = comparison.row(name).tied_to
        yield note(
            code="redundant",
            tensor=name,
            file=comparison.inventory.file_of(tensor),
            message=f"{name} is stored, {tensor.end - tensor.begin:,} bytes, although it is tied to "
            f"{_name(comparison, other.id) if other else ''}: not counted; only --deep shows whether the copy is equal",
        )


def _name(comparison: Comparison, weight: str) -> str:
    """A weight's name in the convention."""
    return next((name for name, row in comparison.needed.items() if row.weights[0].id == weight), weight)
