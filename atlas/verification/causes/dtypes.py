"""Dtypes: tensors of another dtype than the stated one; if none is stated, tensors of more than one dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import formatting
from atlas.verification.comparison import Comparison
from atlas.verification.devices import devices


class _Stored(NamedTuple):
    """A tensor of the model, or one device's share of it; only a share has a file."""

    name: str
    dtype: str
    file: str | None


def other(comparison: Comparison) -> Iterator[Finding]:
    """Check every tensor of the model, and a stored copy of a tied one, but no buffer."""
    model, source = comparison.graph.model, comparison.description.source
    if {tensor.dtype for tensor in comparison.found.values()} == {model.dtype}:
        return
    stored = list(_stored(comparison))
    counts = Counter(each.dtype for each in stored)
    if not model.dtype_stated:
        if len(counts) > 1:
            rarest = min(reversed(counts), key=lambda dtype: counts[dtype])
            odd = [each for each in stored if each.dtype == rarest]
            mixture = ", ".join(f"{count:,} in {dtype}" for dtype, count in counts.most_common())
            if odd[0].file:
                mixture = mixture.replace(" in ", " shares in ", 1)
            yield Finding(
                code="dtype",
                tensor=odd[0].name,
                file=odd[0].file,
                found=mixture,
                count=len(_names(odd)),
                message=f"dtypes are mixed, and {source} states none: {mixture}, namely {_which(odd, stored)}; "
                "convert all tensors to one dtype",
            )
        return
    every = len(_names(stored))
    for dtype in counts:
        if dtype != model.dtype:
            odd = [each for each in stored if each.dtype == dtype]
            names, where = _names(odd), "" if len(odd) == len(stored) else _in(odd)
            count = len(names)
            which = "all" if count == every else f"{count:,} of"
            yield Finding(
                code="dtype",
                tensor=odd[0].name,
                file=odd[0].file,
                expected=model.dtype,
                found=dtype,
                count=count,
                message=f"{which} {formatting.tensor_count(every)} {'is' if count == 1 else 'are'} {dtype}{where}, and {source} states "
                f"{model.dtype}" + ("" if count == every else f": {formatting.name_list(names)}"),
            )


def _stored(comparison: Comparison) -> Iterator[_Stored]:
    """The model's stored tensors; of model-parallel files each share."""
    names = [
        name
        for name in comparison.found
        if (name in comparison.needed or name in comparison.copies) and name not in comparison.any_dtype
    ]
    headers = comparison.inventory.headers
    if not comparison.inventory.shares or len(headers) < 2:
        yield from (_Stored(name, comparison.found[name].dtype, None) for name in names)
        return
    for file in devices(comparison).files:
        for name in names:
            share = headers[file].tensors.get(comparison.found[name].name)
            if share is not None:
                yield _Stored(name, share.dtype, file)


def _names(stored: Sequence[_Stored]) -> list[str]:
    return list(dict.fromkeys(each.name for each in stored))


def _which(odd: Sequence[_Stored], stored: Sequence[_Stored]) -> str:
    files = {each.file for each in odd} - {None}
    if files and len(odd) == sum(each.file in files for each in stored):
        return f"all tensors{_in(odd)}"
    return formatting.name_list(_names(odd)) + _in(odd)


def _in(stored: Sequence[_Stored]) -> str:
    """` in FILES`, if these are shares."""
    files = list(dict.fromkeys(each.file for each in stored if each.file))
    return f" in {listing(files)}" if files else ""
