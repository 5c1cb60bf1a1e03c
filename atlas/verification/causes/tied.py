"""A tied matrix in its second place: absent is right, a copy is unusual; where it is not tied it must be there."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, note, warning
from atlas.verification.case import Case
from atlas.verification.words import written


def absent(case: Case) -> Iterator[Finding]:
    """The output matrix is missing, and the model does not tie it."""
    ties = case.graph.architecture.ties
    for name, row in list(case.missing.items()):
        other = ties.get(row.weights[0].id)
        if other is not None:
            key, who = case.description.key("tied"), case.description.who
            yield Finding(
                code="tied",
                tensor=name,
                expected=row.shape,
                message=f"{name} is missing, expected {written(row.shape)}, and {who} does not tie it to "
                f"{_name(case, other)}: a loader fills it with random numbers; if it is tied, its configuration has to say so with {key}",
            )
            case.explained([name])


def standing_in(case: Case) -> Iterator[Finding]:
    """The copy alone: transformers takes it for the original."""
    for original, copy in case.standing_in.items():
        yield warning(
            code="tied",
            tensor=original,
            file=case.inventory.file_of(case.found[original]),
            message=f"{copy} is stored in place of {original}, to which it is tied: it counts as that, but a loader that drops "
            f"tied copies finds no {original}; save it under that name",
        )


def copies(case: Case) -> Iterator[Finding]:
    """A stored copy."""
    for name, tensor in case.copies.items():
        other = case.row(name).tied_to
        yield note(
            code="redundant",
            tensor=name,
            file=case.inventory.file_of(tensor),
            message=f"{name} is stored, {tensor.end - tensor.begin:,} bytes, although it is tied to "
            f"{_name(case, other.id) if other else ''}: not counted; whether it is an equal copy no header tells",
        )


def _name(case: Case, weight: str) -> str:
    """What the convention calls a weight."""
    return next((name for name, row in case.needed.items() if row.weights[0].id == weight), weight)
