"""The data of a checkpoint, read once: what is in it that should not be."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint import contents
from atlas.checkpoint.findings import Finding
from atlas.checkpoint.header import Header
from atlas.checkpoint.inventory import Inventory
from atlas.checkpoint.store import MOST_TEXT_BYTES, Folder
from atlas.errors import UsageError
from atlas.verification.case import Case
from atlas.verification.deep import says
from atlas.verification.deep.blocks import block_bytes
from atlas.verification.deep.crew import Crew, threads_of_use
from atlas.verification.deep.lanes import FileLane, PairLane
from atlas.verification.deep.mapped import Source, stamp, survives, surviving
from atlas.verification.deep.recorded import Recorded, recorded
from atlas.verification.deep.replicas import Replica, replicas
from atlas.verification.deep.ties import Place, Tie, ties
from atlas.verification.deep.values import Values

Told = Callable[[str, int, int], None]
"""Of what is under way, how many bytes are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Deep:
    """What reading the data showed.

    Attributes:
        findings: `nonfinite`, `zero`, `hash`; `tied` or `redundant` of a pair; `duplicate` where devices' copies differ; a
            file that could not be read to its end.
        compared: the copies of which it is known by now whether they are equal.
        hashes: file -> its SHA-256, of each of which that was computed.
        checked: file -> where the hash stands that it was held against, of each that was.
    """

    findings: tuple[Finding, ...]
    compared: frozenset[str]
    hashes: Mapping[str, str]
    checked: Mapping[str, str]
    bytes_read: int

    def beside(self, findings: Iterable[Finding]) -> list[Finding]:
        """These with what the headers showed, but for what that left open and is known by now."""
        kept = [found for found in findings if found.code != "redundant" or found.tensor not in self.compared]
        return [*kept, *self.findings]


def check(
    inventory: Inventory,
    case: Case | None = None,
    *,
    hash_all: bool = False,
    threads: int | None = None,
    told: Told | None = None,
) -> Deep:
    """Read the data of a checkpoint on disk.

    Args:
        case: what it is held against; without it nothing is known to be tied.
        hash_all: compute the SHA-256 of weight files also where no hash is recorded.
        threads: by default as many as there are processors, up to 8.
        told: of the progress, about ten times a second.

    Raises:
        UsageError: the checkpoint is not on disk.
        KeyboardInterrupt: within a second.
    """
    store = inventory.store
    if not isinstance(store, Folder):
        raise UsageError(
            f"{store.location}: --deep reads the data, which is on the Hub",
            hint="fetch it, with --download",
        )
    workers = threads or threads_of_use()
    size = block_bytes(workers)
    beside = _beside(store)
    known, findings = recorded(store, [*inventory.headers, *beside])
    files = {
        file: FileLane(_source(store, file, header), header, algorithms, size)
        for file, header, algorithms in _wanted(inventory, beside, known, hash_all)
    }
    pairs = [(tie, _lanes(tie, files, size)) for tie in (ties(case) if case else ())]
    copies = [
        (replica, _lane(replica.copy, replica.original, files, size))
        for replica in (replicas(case) if case else ())
    ]
    compared = [lane for _, pair in pairs for lane in pair]
    lanes: list[FileLane | PairLane] = [*files.values(), *compared, *(lane for _, lane in copies)]
    total = sum(lane.bytes for lane in lanes)
    with surviving() as rescue:

        def tick(done: int) -> None:
            rescue()
            if told is not None:
                told("reading the data", done, total)

        bytes_read = Crew(lanes, tick).run(workers)
    sure = [(tie, pair) for tie, pair in pairs if not any(lane.error for lane in pair)]
    return Deep(
        findings=(
            *findings,
            *_of_files(files, known),
            *_of_values(files),
            *_of_pairs(sure),
            *_of_replicas(copies),
        ),
        compared=frozenset(tie.copy for tie, _ in sure),
        hashes={file: digest for file, lane in files.items() if (digest := lane.digest("sha256"))},
        checked={
            file: known[file].where
            for file, lane in files.items()
            if file in known and lane.digest(known[file].algorithm)
        },
        bytes_read=bytes_read,
    )


def _source(store: Folder, file: str, header: Header) -> Source:
    path = store.path / file
    return Source(path, f"{store.location}/{file}", survives(), stamp(path, header.file_bytes))


def _beside(store: Folder) -> dict[str, int]:
    """The files that lie beside weights, a tokenizer, a configuration, and their sizes."""
    return {
        name: size
        for name, size in store.files().items()
        if size is not None
        and _is_regular(store.path / name)
        and size <= MOST_TEXT_BYTES
        and not name.endswith(contents.SUFFIX)
        and not contents.other_weights([name])
    }


def _is_regular(path: Path) -> bool:
    """Whether it is a file with bytes in it, and no FIFO that would have to be waited for."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _wanted(
    inventory: Inventory, beside: Mapping[str, int], known: Mapping[str, Recorded], hash_all: bool
) -> Iterator[tuple[str, Header, set[str]]]:
    """What to read, and the hashes to compute of it: the model's files, and those beside whose hash is recorded."""
    for file, header in inventory.headers.items():
        algorithms = {"sha256"} if hash_all else set()
        if file in known:
            algorithms.add(known[file].algorithm)
        if header.file_bytes < header.data_start + header.data_bytes:
            algorithms.clear()  # of a truncated file no hash is right, and that is told already
        yield file, header, algorithms
    for file in known:
        if file in beside:
            yield file, Header({}, {}, 0, 0, beside[file]), {known[file].algorithm}


def _lanes(tie: Tie, files: Mapping[str, FileLane], size: int) -> list[PairLane]:
    """What has to be read to compare a pair: nothing, where they are of different dtypes."""
    if tie.dtypes[0] != tie.dtypes[1]:
        return []
    return [_lane(copy, original, files, size) for copy, original in tie.places]


def _lane(copy: Place, original: Place, files: Mapping[str, FileLane], size: int) -> PairLane:
    return PairLane(_side(files, copy), _side(files, original), copy[1], size)


def _side(files: Mapping[str, FileLane], place: Place) -> tuple[Source, int]:
    """A tensor's file, and where in it the tensor begins."""
    file, tensor = place
    return files[file].source, files[file].header.data_start + tensor.begin


def _of_files(files: Mapping[str, FileLane], known: Mapping[str, Recorded]) -> Iterator[Finding]:
    """What there is to say of whole files."""
    for file, lane in files.items():
        if lane.error is not None:
            yield says.not_read(file, lane.error)
        digest = lane.digest(known[file].algorithm) if file in known else None
        if digest is not None and digest != known[file].digest:
            yield says.other_bytes(file, digest, known[file])


def _of_values(files: Mapping[str, FileLane]) -> Iterator[Finding]:
    """What there is to say of the values of all tensors."""
    zero, strange = [], []
    matrices = 0
    for file, lane in files.items():
        for tensor in lane.header.tensors.values():
            values = lane.values.get(tensor.name, Values())
            if values.first is not None:
                strange.append((file, tensor, values))
            if len(tensor.shape) > 1 and values.bytes:
                matrices += 1
                if values.zero and values.bytes == tensor.end - tensor.begin:
                    zero.append((file, tensor))
    yield from says.nonfinite(strange)
    yield from says.zeros(zero, matrices)


def _of_pairs(pairs: Iterable[tuple[Tie, Sequence[PairLane]]]) -> Iterator[Finding]:
    """What there is to say of tied matrices, of which all could be read."""
    for tie, lanes in pairs:
        first = next((lane.first for lane in lanes if lane.first is not None), None)
        found = says.tied(tie, sum(lane.differing for lane in lanes), first)
        if found is not None:
            yield found


def _of_replicas(copies: Iterable[tuple[Replica, PairLane]]) -> Iterator[Finding]:
    """What there is to say of each device whose copies are not those of the first."""
    unequal: dict[tuple[str, str], list[tuple[Replica, PairLane]]] = {}
    for replica, lane in copies:
        if lane.error is None and lane.first is not None:
            unequal.setdefault((replica.copy[0], replica.original[0]), []).append((replica, lane))
    for (file, other), found in unequal.items():
        replica, lane = found[0]
        yield says.unequal_replicas(
            file, other, replica.copy[1], [each.name for each, _ in found], lane.differing, lane.first
        )
