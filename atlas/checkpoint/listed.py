"""What an index says against what the headers say: tensors in another file than it says, in none, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from atlas.checkpoint.faults import show
from atlas.checkpoint.findings import Finding, warning
from atlas.checkpoint.header import Header, Tensor
from atlas.checkpoint.index import Index

_STALE = "the index belongs to another state of the checkpoint; download it again, or save the model anew"


@dataclass(frozen=True, slots=True)
class Astray:
    """The tensors that are not where an index says.

    Attributes:
        elsewhere: in another file.
        nowhere: in none, although the file it names can be read.
        hanging: file that cannot be read or is not there -> those that no other file holds.
    """

    elsewhere: tuple[str, ...] = ()
    nowhere: tuple[str, ...] = ()
    hanging: Mapping[str, list[str]] = field(default_factory=dict)


def astray(
    places: Mapping[str, str],
    headers: Mapping[str, Header],
    tensors: Mapping[str, Tensor],
    outside: frozenset[str],
) -> Astray:
    """Sort an index's tensors by where they are."""
    elsewhere, nowhere = [], []
    hanging: dict[str, list[str]] = {}
    for name, file in places.items():
        header = headers.get(file)
        if name in outside or (header is not None and name in header.tensors):
            continue
        if name in tensors:
            elsewhere.append(name)
        elif header is not None:
            nowhere.append(name)
        else:
            hanging.setdefault(file, []).append(name)
    return Astray(tuple(elsewhere), tuple(nowhere), hanging)


def findings(
    listed: Index, found: Astray, headers: Mapping[str, Header], absent: Mapping[str, str], where: str
) -> Iterator[Finding]:
    """What to say of them.

    Args:
        absent: the files it names that are not there.
        where: the index's path or address.
    """
    if found.elsewhere:
        name = found.elsewhere[0]
        lies = next(file for file, header in headers.items() if name in header.tensors)
        idle = sum(file not in found.hanging for file in absent)
        yield Finding(
            code="index",
            tensor=name,
            file=listed.name,
            expected=listed.places[name],
            found=lies,
            count=len(found.elsewhere),
            message=f"{where}: says that {show(name)} lies in {listed.places[name]}, but it lies in {lies}"
            + _and_more(found.elsewhere)
            + (
                f"; of the files it names {idle:,} are not there, and no tensor is missing for that"
                if idle
                else ""
            )
            + f"; {_STALE}",
        )
    if found.nowhere:
        name = found.nowhere[0]
        yield Finding(
            code="index",
            tensor=name,
            file=listed.name,
            expected=listed.places[name],
            count=len(found.nowhere),
            message=f"{where}: says that {show(name)} lies in {listed.places[name]}, but no file holds it"
            f"{_and_more(found.nowhere)}; {_STALE}",
        )


def total_size(listed: Index, headers: Mapping[str, Header], where: str) -> Iterator[Finding]:
    """Whether the bytes it states are those of all tensors together."""
    held = sum(header.data_bytes for header in headers.values())
    if listed.total_size is not None and listed.total_size != held:
        stated = listed.total_size
        sensible = type(stated) is int and 0 <= stated < 2**64
        yield warning(
            code="index",
            file=listed.name,
            expected=held,
            found=stated if sensible else show(stated),
            message=f"{where}: total_size is {f'{stated:,}' if sensible else show(stated)}, but the tensors take "
            f"{held:,} bytes",
        )


def _and_more(names: tuple[str, ...]) -> str:
    return f", and so with {len(names) - 1:,} more" if len(names) > 1 else ""
