"""Weights that are stored quantised although the configuration does not declare it."""

from __future__ import annotations

from collections.abc import Iterator

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import formatting
from atlas.verification.comparison import Comparison


def undeclared(comparison: Comparison) -> Iterator[Finding]:
    """Matrices in a dtype of quantised ones, or replaced by the parts of quantised ones: one finding for all of it."""
    known = comparison.description.quantised
    parts = [name for name in comparison.unexpected if name.endswith(known.tensors)]
    modules = {
        name.removesuffix(end) for name in parts for end in known.tensors if name.endswith(end) and end
    }
    matrices = [name for name in comparison.needed if len(comparison.needed[name].shape) > 1]
    packed = [
        name for name in matrices if name in comparison.found and comparison.found[name].dtype in known.dtypes
    ]
    replaced = [
        name
        for name in (*comparison.missing, *comparison.mismatched)
        if name.rpartition(".")[0] in modules and name not in packed
    ]
    if not replaced and len(packed) * 2 <= len(matrices):
        return
    extra = [name for name in comparison.unexpected if name.rpartition(".")[0] in modules or name in parts]
    stored = [*dict.fromkeys([*packed, *extra])]
    first = comparison.found[(stored or replaced)[0]]
    dtypes = listing(sorted({comparison.found[name].dtype for name in packed}))
    examples = listing((parts or packed)[:2])
    yield Finding(
        code="quantisation",
        tensor=first.name,
        file=comparison.inventory.file_of(first),
        found=dtypes or None,
        count=len({*stored, *(name for name in replaced if name in comparison.found)}),
        message=f"the weights are stored quantised, in tensors such as {examples}"
        + (f" ({formatting.tensor_count(len(packed))} in {dtypes})" if packed else "")
        + f", but {comparison.description.source} does not declare a quantisation (quantization_config); quantised weights "
        "are not checked",
    )
    comparison.explained([*replaced, *packed, *extra])
    comparison.any_dtype.update(packed, (name for name in replaced if name in comparison.found))
