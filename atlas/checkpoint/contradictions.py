"""Consistency checks of a readable header: each tensor's shape against its offsets, the offsets against each other and the file size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from atlas.checkpoint.faults import AGAIN, Fault, Malformed, show
from atlas.checkpoint.tensor import MAX_COUNT, Header, Tensor, product
from atlas.dtypes import BITS

MOST_FAULTS = 100
"""Faults of one kind that get a message each; a header can hold millions of wrong tensors."""


def contradictions(header: Header, where: str) -> tuple[Fault, ...]:
    """The faults of a readable header: first within each tensor, then between tensors, then against the file size."""
    own, others = _Faults(where), _Faults(where)
    beyond_file: list[Tensor] = []
    end, last = 0, None
    end_is_known = True  # else one wrong offset would be reported again as a gap, an overlap or a wrong size
    for tensor in header.tensors.values():
        wrong = _is_wrong(tensor)
        if wrong:
            own.add(tensor.name, _shape_mismatch, tensor)
            if tensor.begin > min(tensor.end, header.file_bytes) and len(beyond_file) < MOST_FAULTS:
                beyond_file.append(tensor)
        elif end_is_known and tensor.begin != end:
            others.add(tensor.name, _gap_or_overlap, tensor, last, end)
        end_is_known = not wrong and (end_is_known or tensor.end >= end)
        if tensor.end >= end:
            end, last = tensor.end, tensor.name
    if beyond_file:
        others.drop_gaps_of(beyond_file)
    found = [*own.all(), *others.all()]
    if end_is_known and header.data_start + end != header.file_bytes:
        found.append(_size_mismatch(header).at(where))
    return tuple(found)


class _Faults:
    """The first faults, each with a message, and the number of further ones."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._found: list[Fault] = []
        self._more = 0

    def add(self, name: str, what: Callable[..., Malformed], *about: object) -> None:
        if len(self._found) < MOST_FAULTS:
            self._found.append(what(*about).at(self._where, name))
        else:
            self._more += 1

    def drop_gaps_of(self, beyond_file: Sequence[Tensor]) -> None:
        """Drop the gaps left by tensors whose begin is past the end of the file; those tensors have a fault of their own."""
        ends = {tensor.end for tensor in beyond_file}
        sizes = {product(tensor.shape) * BITS[tensor.dtype] // 8 for tensor in beyond_file}
        self._found = [
            fault
            for fault in self._found
            if not isinstance(fault.found, int)
            or not isinstance(fault.expected, int)
            or not (fault.found in ends or fault.found - fault.expected in sizes)
        ]

    def all(self) -> list[Fault]:
        if self._more:
            message = f"{self._where}: {self._more:,} more tensors have offsets that are wrong"
            return [*self._found, Fault("offsets", message, AGAIN, count=self._more)]
        return self._found


def _is_wrong(tensor: Tensor) -> bool:
    """Whether shape × dtype is not the span of the offsets."""
    _, dtype, shape, begin, end = tensor
    bits = (shape[0] * shape[1] if len(shape) == 2 else product(shape)) * BITS[dtype]
    return bits != 8 * (end - begin) or bits > MAX_COUNT


def _shape_mismatch(tensor: Tensor) -> Malformed:
    """How shape × dtype differs from the span of the offsets."""
    bits = product(tensor.shape) * BITS[tensor.dtype]
    span = tensor.end - tensor.begin
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


def _gap_or_overlap(tensor: Tensor, last: str | None, end: int) -> Malformed:
    """How the begin of a tensor differs from the end of the previous one."""
    if last is None:
        what = f"begins at byte {tensor.begin:,} of the data; expected 0, since it is the first"
    elif tensor.begin > end:
        what = f"begins at byte {tensor.begin:,} of the data, {tensor.begin - end:,} after the end of {show(last)}: unused bytes between tensors"
    else:
        what = f"begins at byte {tensor.begin:,} of the data and overlaps {show(last)}, which ends at {end:,}"
    return Malformed(what, AGAIN, code="offsets", expected=end, found=tensor.begin)


def _size_mismatch(header: Header) -> Malformed:
    """How the end of the data differs from the file size."""
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
        f"truncated: {needed:,} bytes declared, {found:,} found, {needed - found:,} too few; "
        f"incomplete: {len(cut):,} of {len(header.tensors):,} tensors: {', '.join(map(show, cut[:3]))}{more}",
        f"the download stopped early; {AGAIN}",
        code="truncated",
        expected=needed,
        found=found,
    )
