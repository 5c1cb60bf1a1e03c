"""Compares an index with the headers: tensors in another file than it names, tensors in no file, and the total size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from atlas.checkpoint.faults import show
from atlas.checkpoint.findings import Finding, warning
from atlas.checkpoint.header import Header, Tensor
from atlas.checkpoint.index import Index

_STALE = "the index belongs to another version of the checkpoint; download it again, or save the model anew"


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Tensors that are not in the file that the index names.

    Attributes:
        in_another_file: tensors in another file.
        in_no_file: tensors in no file, although the named file can be read.
        in_absent_file: missing or unreadable file -> the tensors that no other file has.
    """

    in_another_file: tuple[str, ...] = ()
    in_no_file: tuple[str, ...] = ()
    in_absent_file: Mapping[str, list[str]] = field(default_factory=dict)


def misplaced(
    places: Mapping[str, str],
    headers: Mapping[str, Header],
    tensors: Mapping[str, Tensor],
    outside: frozenset[str],
) -> Misplaced:
    """Sort the tensors of an index by where they are."""
    in_another_file, in_no_file = [], []
    in_absent_file: dict[str, list[str]] = {}
    for name, file in places.items():
        header = headers.get(file)
        if name in outside or (header is not None and name in header.tensors):
            continue
        if name in tensors:
            in_another_file.append(name)
        elif header is not None:
            in_no_file.append(name)
        else:
            in_absent_file.setdefault(file, []).append(name)
    return Misplaced(tuple(in_another_file), tuple(in_no_file), in_absent_file)


def findings(
    index: Index, found: Misplaced, headers: Mapping[str, Header], absent: Mapping[str, str], where: str
) -> Iterator[Finding]:
    """The findings for them.

    Args:
        absent: the named files that do not exist.
        where: the index's path or address.
    """
    if found.in_another_file:
        name = found.in_another_file[0]
        actual = next(file for file, header in headers.items() if name in header.tensors)
        unneeded = sum(file not in found.in_absent_file for file in absent)
        yield Finding(
            code="index",
            tensor=name,
            file=index.name,
            expected=index.places[name],
            found=actual,
            count=len(found.in_another_file),
            message=f"{where}: places {show(name)} in {index.places[name]}, but it is in {actual}"
            + _and_more(found.in_another_file)
            + (
                f"; {unneeded:,} of the files it names do not exist, but no tensor is missing because of that"
                if unneeded
                else ""
            )
            + f"; {_STALE}",
        )
    if found.in_no_file:
        name = found.in_no_file[0]
        yield Finding(
            code="index",
            tensor=name,
            file=index.name,
            expected=index.places[name],
            count=len(found.in_no_file),
            message=f"{where}: places {show(name)} in {index.places[name]}, but no file has it"
            f"{_and_more(found.in_no_file)}; {_STALE}",
        )


def total_size(index: Index, headers: Mapping[str, Header], where: str) -> Iterator[Finding]:
    """Compare the stated total_size with the bytes of all tensors."""
    stored = sum(header.data_bytes for header in headers.values())
    if index.total_size is not None and index.total_size != stored:
        stated = index.total_size
        sensible = type(stated) is int and 0 <= stated < 2**64
        yield warning(
            code="index",
            file=index.name,
            expected=stored,
            found=stated if sensible else show(stated),
            message=f"{where}: total_size is {f'{stated:,}' if sensible else show(stated)}, but the tensors take "
            f"{stored:,} bytes",
        )


def _and_more(names: tuple[str, ...]) -> str:
    return f", and the same for {len(names) - 1:,} more" if len(names) > 1 else ""
