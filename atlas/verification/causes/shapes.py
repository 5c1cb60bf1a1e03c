"""Shapes: one axis with another size in every tensor, key and value heads repeated, matrices stored transposed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from atlas.checkpoint.findings import Finding, listing
from atlas.checkpoint.tensor import product
from atlas.errors import SpecError
from atlas.grammar import shapes
from atlas.graph.tensors import Row
from atlas.verification import formatting
from atlas.verification.comparison import Comparison
from atlas.verification.formatting import shape_text


def impossible(comparison: Comparison) -> Iterator[Finding]:
    """A tensor whose shape and offsets contradict each other: reported with its file, so its shape is not judged here."""
    wrong = [
        found.tensor for found in comparison.inventory.findings if found.code == "offsets" and found.tensor
    ]
    comparison.explained(map(comparison.ours, wrong))
    yield from ()


def empty(comparison: Comparison) -> Iterator[Finding]:
    """Tensors without elements: one finding for all of them."""
    names = [
        name
        for name, tensor in comparison.mismatched.items()
        if tensor.elements == 0 and product(comparison.row(name).shape) > 0
    ]
    if not names:
        return
    first = comparison.mismatched[names[0]]
    more = f" and {len(names) - 1:,} more tensors have" if len(names) > 1 else " has"
    yield Finding(
        code="shape",
        tensor=first.name,
        file=comparison.inventory.file_of(first),
        expected=comparison.row(names[0]).shape,
        found=first.shape,
        count=len(names),
        message=f"{names[0]}{more} no elements: expected {shape_text(comparison.row(names[0]).shape)}, found "
        f"{shape_text(first.shape)}; a sharded trainer (DeepSpeed ZeRO-3, FSDP) saves empty tensors if the parameters are not "
        "gathered first: gather them and save again",
    )
    comparison.explained(names)


def stale(comparison: Comparison) -> Iterator[Finding]:
    """An axis has another size than described, in every tensor that has it: one finding for each such axis.

    If most tensors have another shape, and for several causes, it is another model, and that is one finding.
    """
    sizes = _sizes(comparison)
    dims = {**comparison.graph.dims, **sizes}
    by_axis: dict[str, list[str]] = {}
    for name, tensor in comparison.mismatched.items():
        groups = _groups(comparison, comparison.row(name))
        if sizes and tuple(shapes.size(group, dims) for group in groups) == tensor.shape:
            axis = next(axis for axis in shapes.atoms(groups) if axis in sizes)
            by_axis.setdefault(_follows_from(comparison, axis, sizes), []).append(name)
    shown = [axis for axis in by_axis if _is_shown(comparison, axis)]
    fits = ", ".join(f"{comparison.description.key(axis)} {sizes[axis]:,}" for axis in shown)
    fits = f": {fits}" if fits else ""
    others = len(comparison.mismatched) > sum(map(len, by_axis.values()))
    if len(comparison.mismatched) * 2 > len(comparison.found) and len(by_axis) + others > 2:
        names = list(comparison.mismatched)
        yield _finding(
            comparison, names, f"{formatting.tensor_count(len(names))}, which are of another model{fits}"
        )
        return
    for axis, names in by_axis.items():
        yield _finding(comparison, names, _why(comparison, axis, sizes[axis]))


def _finding(comparison: Comparison, names: list[str], why: str) -> Finding:
    first = names[0]
    file = comparison.inventory.file_of(comparison.mismatched[first])
    where = f" in {file}" if file and len(names) == 1 and len(comparison.inventory.headers) > 1 else ""
    finding = Finding(
        code="shape",
        tensor=first,
        file=file,
        expected=comparison.row(first).shape,
        found=comparison.mismatched[first].shape,
        count=len(names),
        message=f"{_differences(comparison, names)}{where}{'; ' if why else ''}{why}",
    )
    comparison.explained(names)
    return finding


def _why(comparison: Comparison, axis: str, found: int) -> str:
    doubt = comparison.description.doubt(axis)
    if comparison.description.file is None and not _is_shown(comparison, axis):
        return "another number of heads, or heads of another width; this is probably another model"
    if axis == "vocab_size":
        more = found - comparison.graph.dims[axis]
        return f"only the rows differ, by {more:+,}: {doubt}, as when tokens {'are added' if more > 0 else 'are removed'}"
    if axis == "n_kv_heads" and found == comparison.graph.dims["n_heads"]:
        return (
            f"keys and values are stored with all {found:,} heads: repeated for each query head, or {doubt}"
        )
    return f"all of them fit {comparison.description.key(axis)} {found:,}: {doubt}"


def _is_shown(comparison: Comparison, axis: str) -> bool:
    """Whether a differing tensor has the axis by itself as a dimension. A product, such as heads × width, shows neither factor."""
    return any(
        (axis,) in _groups(comparison, comparison.row(name))
        for name in (*comparison.mismatched, *comparison.found)
        if name in comparison.needed or name in comparison.mismatched
    )


def _sizes(comparison: Comparison) -> dict[str, int]:
    """Axis -> the size it has in every tensor, if that is not the described one."""
    settable = {*comparison.graph.model.dims, *comparison.graph.architecture.derived}
    votes: Counter[tuple[str, int]] = Counter()
    for name, tensor in comparison.mismatched.items():
        row = comparison.row(name)
        for group, got, wanted in zip(_groups(comparison, row), tensor.shape, row.shape, strict=False):
            for axis in settable.intersection(group) if got != wanted else ():
                size, rest = divmod(got, wanted // comparison.graph.dims[axis])
                if size and not rest:
                    votes[axis, size] += 1
    found: dict[str, int] = {}
    for (axis, size), _ in sorted(votes.items(), key=lambda vote: (-vote[1], vote[0])):
        if axis not in found and _holds_throughout(
            comparison, axis, {**comparison.graph.dims, **found, axis: size}
        ):
            found[axis] = size
    return found


def _holds_throughout(comparison: Comparison, axis: str, dims: Mapping[str, int]) -> bool:
    """Whether every tensor that has the axis has these sizes along it."""
    for name, tensor in comparison.found.items():
        if name in comparison.needed or name in comparison.mismatched or name in comparison.copies:
            groups = _groups(comparison, comparison.row(name))
            lengths = tensor.shape if len(tensor.shape) == len(groups) else [None] * len(groups)
            for group, length in zip(groups, lengths, strict=True):
                if axis in group and shapes.size(group, dims) != length:
                    return False
    return True


def _groups(comparison: Comparison, row: Row) -> shapes.Shape:
    """The axes of a stored tensor: those of its weight, if only the order of the rows differs."""
    declared = row.weights[0].shape
    if tuple(shapes.size(group, comparison.graph.dims) for group in declared) == row.shape:
        return declared
    return row.layouts[0] if len(row.weights) == 1 else ()


def _follows_from(comparison: Comparison, axis: str, sizes: Mapping[str, int]) -> str:
    """The axis whose size determines this one's: a head's width follows from the model's, unless it is stated."""
    text = comparison.graph.architecture.derived.get(axis)
    if text is None or axis in comparison.graph.model.dims:
        return axis
    causes = [other for other in sizes if other != axis and re.search(rf"\b{other}\b", text)]
    try:
        follows = causes and shapes.evaluate(text, {**comparison.graph.dims, **sizes}) == sizes[axis]
    except SpecError:
        follows = False
    return causes[0] if follows else axis


def transposed(comparison: Comparison) -> Iterator[Finding]:
    """Matrices stored [in, out] instead of [out, in]."""
    names = [
        name
        for name, tensor in comparison.mismatched.items()
        if len(tensor.shape) == 2 and tensor.shape[::-1] == comparison.row(name).shape
    ]
    if names:
        yield _finding(comparison, names, "transposed: torch stores a matrix [out, in]")


def other(comparison: Comparison) -> Iterator[Finding]:
    """Every other shape: one finding for the same tensor of several layers."""
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for name, tensor in comparison.mismatched.items():
        groups.setdefault((formatting.wildcard(name), tensor.shape), []).append(name)
    for (_, shape), names in groups.items():
        yield _finding(comparison, names, _how(shape, comparison.row(names[0]).shape))


def _how(found: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    if product(found) == product(wanted):
        return "the same number of elements in another shape"
    if len(found) == len(wanted) == 2 and found[1] == wanted[1]:
        return "only the rows differ"
    return "only the columns differ" if len(found) == len(wanted) == 2 and found[0] == wanted[0] else ""


def _differences(comparison: Comparison, names: list[str]) -> str:
    """`a.weight and b.weight: expected [128, 64], found [129, 64]`, for each pair of shapes."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for name in names:
        pair = shape_text(comparison.row(name).shape), shape_text(comparison.mismatched[name].shape)
        pairs.setdefault(pair, []).append(name)
    texts = []
    for (wanted, found), alike in pairs.items():
        rows = {formatting.wildcard(name) for name in alike}
        where = formatting.in_layers(map(comparison.layer, alike)) if len(rows) == 1 else ""
        texts.append(f"{formatting.name_list(alike)}{where}: expected {wanted}, found {found}")
    return listing(texts)
