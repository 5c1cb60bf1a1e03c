"""Dtypes: another than the one stated; where none is stated, only a mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from atlas.checkpoint.findings import Finding, listing
from atlas.verification import words
from atlas.verification.case import Case
from atlas.verification.devices import devices


class _Stored(NamedTuple):
    """A tensor of the model, or one device's share of it; the file is told only of a share."""

    name: str
    dtype: str
    file: str | None


def other(case: Case) -> Iterator[Finding]:
    """Every tensor of the model, a stored copy of a tied one too, and no buffer."""
    model, who = case.graph.model, case.description.who
    if {tensor.dtype for tensor in case.found.values()} == {model.dtype}:
        return
    stored = list(_stored(case))
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
                message=f"dtypes are mixed, and {who} states none: {mixture}, namely {_which(odd, stored)}; "
                "convert them all to one",
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
                message=f"{which} {words.tensors(every)} {'is' if count == 1 else 'are'} {dtype}{where}, and {who} states "
                f"{model.dtype}" + ("" if count == every else f": {words.together(names)}"),
            )


def _stored(case: Case) -> Iterator[_Stored]:
    """What is stored of the model: tensor by tensor, of model-parallel files share by share."""
    names = [name for name in case.found if name in case.needed or name in case.copies]
    headers = case.inventory.headers
    if not case.inventory.shares or len(headers) < 2:
        yield from (_Stored(name, case.found[name].dtype, None) for name in names)
        return
    for file in devices(case).files:
        for name in names:
            share = headers[file].tensors.get(case.found[name].name)
            if share is not None:
                yield _Stored(name, share.dtype, file)


def _names(stored: Sequence[_Stored]) -> list[str]:
    return list(dict.fromkeys(each.name for each in stored))


def _which(odd: Sequence[_Stored], stored: Sequence[_Stored]) -> str:
    files = {each.file for each in odd} - {None}
    if files and len(odd) == sum(each.file in files for each in stored):
        return f"all that is{_in(odd)}"
    return words.together(_names(odd)) + _in(odd)


def _in(stored: Sequence[_Stored]) -> str:
    """The files of shares."""
    files = list(dict.fromkeys(each.file for each in stored if each.file))
    return f" in {listing(files)}" if files else ""
