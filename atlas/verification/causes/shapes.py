"""Shapes: a size that is stale throughout, key and value heads written out, matrices stored the other way round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from atlas.checkpoint.findings import Finding, listing
from atlas.checkpoint.tensor import product
from atlas.errors import SpecError
from atlas.grammar import shapes
from atlas.graph.tensors import Row
from atlas.verification import words
from atlas.verification.case import Case
from atlas.verification.words import written


def impossible(case: Case) -> Iterator[Finding]:
    """A tensor whose shape and offsets contradict each other: told with its file, and its shape is nobody's."""
    wrong = [found.tensor for found in case.inventory.findings if found.code == "offsets" and found.tensor]
    case.explained(map(case.ours, wrong))
    yield from ()


def stale(case: Case) -> Iterator[Finding]:
    """An axis has another size than described, in every tensor that has it: one finding for each such axis.

    Where most tensors have another shape, and for several causes, it is another model, and that is one finding.
    """
    sizes = _sizes(case)
    dims = {**case.graph.dims, **sizes}
    by_axis: dict[str, list[str]] = {}
    for name, tensor in case.mismatched.items():
        groups = _groups(case, case.row(name))
        if sizes and tuple(shapes.size(group, dims) for group in groups) == tensor.shape:
            axis = next(axis for axis in shapes.atoms(groups) if axis in sizes)
            by_axis.setdefault(_follows_from(case, axis, sizes), []).append(name)
    fits = ", ".join(f"{case.description.key(axis)} {sizes[axis]:,}" for axis in by_axis)
    others = len(case.mismatched) > sum(map(len, by_axis.values()))
    if len(case.mismatched) * 2 > len(case.found) and len(by_axis) + others > 2:
        names = list(case.mismatched)
        yield _finding(case, names, f"{words.tensors(len(names))}, which fit another model: {fits}")
        return
    for axis, names in by_axis.items():
        yield _finding(case, names, _why(case, axis, sizes[axis]))


def _finding(case: Case, names: list[str], why: str) -> Finding:
    first = names[0]
    file = case.inventory.file_of(case.mismatched[first])
    where = f" in {file}" if file and len(names) == 1 and len(case.inventory.headers) > 1 else ""
    finding = Finding(
        code="shape",
        tensor=first,
        file=file,
        expected=case.row(first).shape,
        found=case.mismatched[first].shape,
        count=len(names),
        message=f"{_differences(case, names)}{where}{'; ' if why else ''}{why}",
    )
    case.explained(names)
    return finding


def _why(case: Case, axis: str, found: int) -> str:
    doubt = case.description.doubt(axis)
    if axis == "vocab_size":
        more = found - case.graph.dims[axis]
        return f"only the rows differ, by {more:+,}: {doubt}, as when tokens {'are added' if more > 0 else 'are removed'}"
    if axis == "n_kv_heads" and found == case.graph.dims["n_heads"]:
        return f"keys and values are stored with all {found:,} heads: written out for each query head, or {doubt}"
    return f"all of them fit {case.description.key(axis)} {found:,}: {doubt}"


def _sizes(case: Case) -> dict[str, int]:
    """Axis -> the size it has in every tensor, where that is not the described one."""
    settable = {*case.graph.model.dims, *case.graph.architecture.derived}
    votes: Counter[tuple[str, int]] = Counter()
    for name, tensor in case.mismatched.items():
        row = case.row(name)
        for group, got, wanted in zip(_groups(case, row), tensor.shape, row.shape, strict=False):
            for axis in settable.intersection(group) if got != wanted else ():
                size, rest = divmod(got, wanted // case.graph.dims[axis])
                if size and not rest:
                    votes[axis, size] += 1
    found: dict[str, int] = {}
    for (axis, size), _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        if axis not in found and _holds_throughout(case, axis, {**case.graph.dims, **found, axis: size}):
            found[axis] = size
    return found


def _holds_throughout(case: Case, axis: str, dims: Mapping[str, int]) -> bool:
    """Whether every tensor that has the axis has these sizes along it."""
    for name, tensor in case.found.items():
        if name in case.needed or name in case.mismatched or name in case.copies:
            groups = _groups(case, case.row(name))
            lengths = tensor.shape if len(tensor.shape) == len(groups) else [None] * len(groups)
            for group, length in zip(groups, lengths, strict=True):
                if axis in group and shapes.size(group, dims) != length:
                    return False
    return True


def _groups(case: Case, row: Row) -> shapes.Shape:
    """The axes of a stored tensor: as its weight is declared, where the rows merely come in another order."""
    declared = row.weights[0].shape
    if tuple(shapes.size(group, case.graph.dims) for group in declared) == row.shape:
        return declared
    return row.layouts[0] if len(row.weights) == 1 else ()


def _follows_from(case: Case, axis: str, sizes: Mapping[str, int]) -> str:
    """The axis whose size gives this one's: a head's width follows from the model's, where no other was stated."""
    text = case.graph.architecture.derived.get(axis)
    if text is None or axis in case.graph.model.dims:
        return axis
    causes = [other for other in sizes if other != axis and re.search(rf"\b{other}\b", text)]
    try:
        follows = causes and shapes.evaluate(text, {**case.graph.dims, **sizes}) == sizes[axis]
    except SpecError:
        follows = False
    return causes[0] if follows else axis


def transposed(case: Case) -> Iterator[Finding]:
    """Matrices stored [in, out]."""
    names = [
        name
        for name, tensor in case.mismatched.items()
        if len(tensor.shape) == 2 and tensor.shape[::-1] == case.row(name).shape
    ]
    if names:
        yield _finding(case, names, "transposed: torch stores a matrix [out, in]")


def other(case: Case) -> Iterator[Finding]:
    """Every other shape: one finding for the same tensor of several layers."""
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, tensor in case.mismatched.items():
        groups.setdefault((words.starred(name), tensor.shape), []).append(name)
    for (_, shape), names in groups.items():
        yield _finding(case, names, _how(shape, case.row(names[0]).shape))


def _how(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if product(found) == product(wanted):
        return "as many numbers in another shape"
    if len(found) == len(wanted) == 2 and found[1] == wanted[1]:
        return "only the rows differ"
    return "only the columns differ" if len(found) == len(wanted) == 2 and found[0] == wanted[0] else ""


def _differences(case: Case, names: list[str]) -> str:
    """`a.weight and b.weight: expected [128, 64], found [129, 64]`, for each pair of shapes."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name in names:
        pair = written(case.row(name).shape), written(case.mismatched[name].shape)
        pairs.setdefault(pair, []).append(name)
    said = []
    for (wanted, found), alike in pairs.items():
        rows = {words.starred(name) for name in alike}
        where = words.in_layers(map(case.layer, alike)) if len(rows) == 1 else ""
        said.append(f"{words.together(alike)}{where}: expected {wanted}, found {found}")
    return listing(said)
