"""The inventory of a checkpoint: its files, their tensors, and the faults that show without a model description.

`atlas.verification` compares the inventory with a description.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from atlas.checkpoint import adapter, index_check, loaders
from atlas.checkpoint.faults import Fault, show
from atlas.checkpoint.findings import Finding, listing, said, unreadable
from atlas.checkpoint.header import Examined, Header, Tensor
from atlas.checkpoint.index_check import Misplaced
from atlas.checkpoint.loaders import LoaderFiles
from atlas.checkpoint.selection import choose
from atlas.checkpoint.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """A checkpoint's files, read.

    Attributes:
        sizes: every file of the store -> its size; None for a broken link.
        headers: file -> its header, of each file of the model that has one.
        tensors: name -> the tensor; of several copies the one in the file that the index names, else the first.
        places: name -> its file according to the index; empty without an index.
        absent: missing file of the model -> "is not there", or that it is a broken link.
        unread: files of the model that exist and have no readable header.
        misplaced: tensors that are in another file than the index names, or in none.
        outside: tensors in files that the index names and that were not requested.
        one_of_many: the one file is a shard by its name, and no index lists what it should hold.
        shares: each file holds a tensor-parallel share of every matrix, as Meta's model-parallel files do.
        loaders: the weight files that each loader opens.
        truncated: tensors whose data is cut off or missing at the end of a truncated file; they do not count as found.
        findings: faults of the files and the index that show without a description.
        bytes_read: bytes read of headers and index.
    """

    store: Store
    sizes: Mapping[str, int | None]
    headers: Mapping[str, Header] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    misplaced: Misplaced = field(default_factory=Misplaced)
    outside: frozenset[str] = frozenset()
    one_of_many: bool = False
    shares: bool = False
    loaders: LoaderFiles = field(default_factory=LoaderFiles)
    truncated: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()
    bytes_read: int = 0

    def known_names(self) -> Set[str]:
        """The names of its tensors, and those that the index lists in missing or unrequested files."""
        unavailable = (name for names in self.misplaced.in_absent_file.values() for name in names)
        return {*self.tensors, *unavailable, *self.outside}

    def file_of(self, tensor: Tensor) -> str | None:
        """The file that holds a tensor; None for one that is joined from tensor-parallel shares."""
        return next(
            (file for file, header in self.headers.items() if header.tensors.get(tensor.name) == tensor), None
        )


def take(store: Store, only: str | None = None) -> Inventory:
    """Read every header of the model in a store.

    Args:
        only: the one weight file, or the index, that was requested.

    Raises:
        CheckpointError: there are no safetensors weights: no files, pickles only, or another format.
    """
    sizes = store.files()
    chosen = choose(store, sizes, only)
    if chosen is None:
        return _adapter(store, sizes)
    if below := [file for file in chosen.series.files if "/" in file]:
        sizes = {**sizes, **store.below(below)}
    there = [file for file in chosen.series.files if sizes.get(file) is not None]
    examined = dict(store.examine(there))
    headers = {file: header for file in there if (header := examined[file].header) is not None}
    if headers and all(adapter.holds_adapter(header.tensors) for header in headers.values()):
        return _adapter(store, sizes)

    absent = dict.fromkeys(chosen.series.absent, "is not there")
    for file in chosen.series.files:
        if sizes.get(file) is None:
            absent[file] = "is a broken link" if file in sizes else "is not there"
    places = chosen.index.places if chosen.index else {}
    tensors = _tensors(headers, places)
    misplaced = index_check.misplaced(places, headers, tensors, chosen.outside)
    findings = [*chosen.findings, *_faults(there, examined)]
    if chosen.whole is not None and chosen.index is not None and len(headers) == len(chosen.series.files):
        ((_, whole),) = store.examine([chosen.whole])
        findings += loaders.whole_next_to_index(chosen.index, store.location, tensors, whole)
    once = len(tensors) == sum(len(header.tensors) for header in headers.values())
    if not once and not chosen.series.shares:
        findings += _duplicates(headers)
    if chosen.index is not None:
        where = f"{store.location}/{chosen.index.name}"
        findings += index_check.findings(chosen.index, misplaced, headers, absent, where)
        if (
            once
            and not (misplaced.in_another_file or misplaced.in_no_file or absent or chosen.outside)
            and len(headers) == len(there)
        ):
            findings += index_check.total_size(chosen.index, headers, where)
    return Inventory(
        store=store,
        sizes=sizes,
        headers=headers,
        tensors=tensors,
        places=places,
        absent=absent,
        unread=tuple(file for file in there if file not in headers),
        misplaced=misplaced,
        outside=chosen.outside,
        one_of_many=chosen.one_of_many,
        shares=chosen.series.shares,
        loaders=loaders.loader_files([file for file in sizes if sizes[file] is not None], chosen.index),
        truncated=_truncated(headers, tensors),
        findings=tuple(findings),
        bytes_read=chosen.bytes_read + sum(header.data_start for header in headers.values()),
    )


def _adapter(store: Store, sizes: Mapping[str, int | None]) -> Inventory:
    return Inventory(store=store, sizes=sizes, findings=(adapter.finding(store, sizes),))


def _tensors(headers: Mapping[str, Header], places: Mapping[str, str]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for file, header in headers.items():
        if found.keys().isdisjoint(header.tensors):
            found |= header.tensors
        else:
            found |= {
                name: tensor
                for name, tensor in header.tensors.items()
                if name not in found or places.get(name) == file
            }
    return found


def _truncated(headers: Mapping[str, Header], tensors: Mapping[str, Tensor]) -> frozenset[str]:
    """The tensors whose data a truncated file does not hold whole."""
    return frozenset(
        tensor.name
        for header in headers.values()
        if header.file_bytes - header.data_start < header.data_bytes
        for tensor in header.tensors.values()
        if tensor.end > max(header.file_bytes - header.data_start, tensor.begin)
        and tensors[tensor.name] is tensor
    )


def _duplicates(headers: Mapping[str, Header]) -> Iterator[Finding]:
    """Names in two files, one finding for each pair of files."""
    first: dict[str, str] = {}
    pairs: dict[tuple[str, str], list[str]] = {}
    for file, header in headers.items():
        for name in header.tensors:
            if (other := first.setdefault(name, file)) != file:
                pairs.setdefault((other, file), []).append(name)
    for (other, file), names in pairs.items():
        yield Finding(
            code="duplicate",
            tensor=names[0],
            file=file,
            found=other,
            count=len(names),
            message=f"{listing([show(name) for name in names])} {'is' if len(names) == 1 else 'are'} in {other} and in {file}; "
            "a loader uses the copy it reads last",
        )


def _faults(files: Sequence[str], examined: Mapping[str, Examined]) -> Iterator[Finding]:
    """The faults of each file, one finding for each kind; where all files are pointers, one finding for all."""
    pointers = [fault for file in files for fault in examined[file].faults if fault.code == "pointer"]
    if len(pointers) > 1 and len(pointers) == len(files):
        first = pointers[0]
        sizes = [fault.expected for fault in pointers if isinstance(fault.expected, int)]
        yield unreadable(
            code="pointer",
            file=files[0],
            expected=sum(sizes) if len(sizes) == len(files) else None,
            count=len(files),
            message=said(f"{first.message}, and so are all {len(files):,} of the model", first.hint),
        )
        return
    for file in files:
        kinds: dict[str, list[Fault]] = {}
        for fault in examined[file].faults:
            kinds.setdefault(fault.code, []).append(fault)
        for code, faults in kinds.items():
            first, count = faults[0], sum(fault.count for fault in faults)
            others = (
                f"{count - 1:,} more tensors of the file are"
                if count > 2
                else "one more tensor of the file is"
            )
            more = f"; {others} wrong too" if count > 1 else ""
            yield Finding(
                code=code,
                tensor=first.tensor,
                file=file,
                expected=first.expected,
                found=first.found,
                count=count,
                message=said(first.message + more, first.hint),
                exit_code=2 if code in {"pointer", "header"} else 1,
            )
