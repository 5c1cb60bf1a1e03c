"""Dtypes: another than the one stated; where none is stated, only a mixture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from atlas.checkpoint.findings import Finding
from atlas.verify import words
from atlas.verify.case import Case


def other(case: Case) -> Iterator[Finding]:
    """Every tensor of the model, a stored copy of a tied one too, and no buffer."""
    model, who = case.graph.model, case.description.who
    if {tensor.dtype for tensor in case.found.values()} == {model.dtype}:
        return
    dtypes = {
        name: tensor.dtype
        for name, tensor in case.found.items()
        if name in case.needed or name in case.copies
    }
    counts = Counter(dtypes.values())
    if not model.dtype_stated:
        if len(counts) > 1:
            rarest = min(counts, key=lambda dtype: counts[dtype])
            names = [name for name, dtype in dtypes.items() if dtype == rarest]
            mixture = ", ".join(f"{count:,} in {dtype}" for dtype, count in counts.most_common())
            yield Finding(
                code="dtype",
                tensor=names[0],
                found=mixture,
                count=len(names),
                message=f"dtypes are mixed, and {who} states none: {mixture}, namely {words.together(names)}",
            )
        return
    for dtype, count in counts.items():
        if dtype != model.dtype:
            names = [name for name, other in dtypes.items() if other == dtype]
            which = "all" if count == len(dtypes) else f"{count:,} of"
            yield Finding(
                code="dtype",
                tensor=names[0],
                expected=model.dtype,
                found=dtype,
                count=count,
                message=f"{which} {words.tensors(len(dtypes))} {'is' if count == 1 else 'are'} {dtype}, and {who} states "
                f"{model.dtype}" + ("" if count == len(dtypes) else f": {words.together(names)}"),
            )
