"""What a header that can be read says against itself: a tensor's shape and offsets, its neighbours, the size of the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.checkpoint.faults import AGAIN, Fault, Malformed, show
from atlas.checkpoint.tensor import MAX_COUNT, Tensor, product
from atlas.dtypes import BITS

if TYPE_CHECKING:
    from atlas.checkpoint.header import Header


def contradictions(header: Header, where: str) -> tuple[Fault, ...]:
    """The faults of a header that can be read: tensors against themselves, then against each other and the file."""
    own: list[Fault] = []
    others: list[Fault] = []
    end, last = 0, None
    sure = True  # of `end`; if not, one wrong offset would be told again as a hole, an overlap, a wrong size
    for tensor in header.tensors.values():
        wrong = _against_itself(tensor)
        if wrong:
            own.append(wrong.at(where, tensor.name))
        elif sure and tensor.begin != end:
            others.append(_against_the_last(tensor, last, end).at(where, tensor.name))
        sure = not wrong and (sure or tensor.end >= end)
        if tensor.end >= end:
            end, last = tensor.end, tensor.name
    if sure and header.data_start + end != header.file_bytes:
        others.append(_against_the_file(header).at(where))
    return (*own, *others)


def _against_itself(tensor: Tensor) -> Malformed | None:
    """Shape × dtype against the span of the offsets."""
    bits = product(tensor.shape) * BITS[tensor.dtype]
    span = tensor.end - tensor.begin
    if bits == 8 * span and bits <= MAX_COUNT:
        return None
    stored = f"shape {show(list(tensor.shape))} of {tensor.dtype}"
    expected: int | None = None
    if span < 0:
        what = f"begins at byte {tensor.begin:,} of the data and ends before that, at {tensor.end:,}"
    elif bits > MAX_COUNT:
        what = f"has {stored}, an overflow: more than 2**64 - 1 elements or bits"
    elif bits % 8:
        what = f"has {stored}, which takes {bits:,} bits, not whole bytes"
    else:
        expected = bits // 8
        what = f"has {stored}, which takes {expected:,} bytes, but its offsets span {span:,}"
    return Malformed(what, AGAIN, code="offsets", expected=expected, found=span)


def _against_the_last(tensor: Tensor, last: str | None, end: int) -> Malformed:
    """The begin of a tensor against the end of what lies before it."""
    if last is None:
        what = f"begins at byte {tensor.begin:,} of the data; expected 0, since it is the first"
    elif tensor.begin > end:
        what = f"begins at byte {tensor.begin:,} of the data, {tensor.begin - end:,} after the end of {show(last)}: a hole"
    else:
        what = f"begins at byte {tensor.begin:,} of the data and overlaps {show(last)}, which ends at {end:,}"
    return Malformed(what, AGAIN, code="offsets", expected=end, found=tensor.begin)


def _against_the_file(header: Header) -> Malformed:
    """The end of the data against the size of the file."""
    needed, found = header.data_start + header.data_bytes, header.file_bytes
    if found > needed:
        return Malformed(
            f"the data ends at byte {needed:,}, but the file goes on to byte {found:,}: a surplus of {found - needed:,}",
            f"something was appended, or a longer file was overwritten; {AGAIN}",
            code="trailing",
            expected=needed,
            found=found,
        )
    there = found - header.data_start
    cut = [tensor.name for tensor in header.tensors.values() if tensor.end > max(there, tensor.begin)]
    more = f" and {len(cut) - 3:,} more" if len(cut) > 3 else ""
    return Malformed(
        f"truncated: the header asks for {needed:,} bytes, only {found:,} were found, {needed - found:,} too few; "
        f"cut or missing are {len(cut):,} of {len(header.tensors):,} tensors: {', '.join(map(show, cut[:3]))}{more}",
        f"the download stopped early; {AGAIN}",
        code="truncated",
        expected=needed,
        found=found,
    )
