"""The data of a checkpoint, read once: what is in it that should not be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from atlas.checkpoint import contents
from atlas.checkpoint.findings import Finding
from atlas.checkpoint.header import Header
from atlas.checkpoint.inventory import Inventory
from atlas.checkpoint.store import MOST_TEXT_BYTES, Folder
from atlas.errors import UsageError
from atlas.verify.case import Case
from atlas.verify.deep import says
from atlas.verify.deep.crew import Crew, threads_of_use
from atlas.verify.deep.lanes import FileLane, PairLane
from atlas.verify.deep.mapped import Source, surviving
from atlas.verify.deep.recorded import recorded
from atlas.verify.deep.ties import Place, Tie, ties
from atlas.verify.deep.values import Values

Told = Callable[[str, int, int], None]
"""Of what is under way, how many bytes are done, and of how many."""


@dataclass(frozen=True, slots=True)
class Deep:
    """What reading the data showed.

    Attributes:
        findings: `nonfinite`, `zero`, `hash`; `tied` or `redundant` of a pair; a file that could not be read to its end.
        compared: the copies of which it is known by now whether they are equal.
        hashes: file -> its hash, of each that was hashed.
        checked: the files whose hash was recorded.
    """

    findings: tuple[Finding, ...]
    compared: frozenset[str]
    hashes: Mapping[str, str]
    checked: frozenset[str]
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
    beside = {name: size for name, size in store.files().items() if _is_small(name, size)}
    known, findings = recorded(store, [*inventory.headers, *beside])
    files: dict[str, FileLane] = {}
    for file, header in inventory.headers.items():
        algorithm = known[file].algorithm if file in known else "sha256" if hash_all else None
        if header.file_bytes < header.data_start + header.data_bytes:
            algorithm = None  # of a truncated file no hash is right, and that is told already
        files[file] = FileLane(_source(store, file), header, algorithm)
    for file in known.keys() - files.keys():
        only_bytes = Header({}, {}, 0, 0, beside[file] or 0)
        files[file] = FileLane(_source(store, file), only_bytes, known[file].algorithm)
    pairs = [(tie, _lanes(tie, files)) for tie in (ties(case) if case else ())]

    lanes: list[FileLane | PairLane] = [
        *files.values(),
        *(lane for _, compared in pairs for lane in compared),
    ]
    total = sum(lane.bytes for lane in lanes)
    crew = Crew(lanes, lambda done: told("reading the data", done, total) if told else None)
    with surviving():
        bytes_read = crew.run(threads or threads_of_use())

    for file, lane in files.items():
        if lane.error is not None:
            findings.append(says.not_read(file, lane.error))
        if lane.digest is not None and file in known and lane.digest != known[file].digest:
            findings.append(says.other_bytes(file, lane.digest, known[file]))
    findings += _of_values(files)
    sure = [(tie, compared) for tie, compared in pairs if not any(lane.error for lane in compared)]
    for tie, compared in sure:
        first = next((lane.first for lane in compared if lane.first is not None), None)
        found = says.tied(tie, sum(lane.differing for lane in compared), first)
        if found is not None:
            findings.append(found)
    return Deep(
        findings=tuple(findings),
        compared=frozenset(tie.copy for tie, _ in sure),
        hashes={file: lane.digest for file, lane in files.items() if lane.digest is not None},
        checked=frozenset(known),
        bytes_read=bytes_read,
    )


def _is_small(name: str, size: int | None) -> bool:
    """Whether a file lies beside the weights, of which a hash may be recorded too: a tokenizer, a configuration."""
    weights = name.endswith(contents.SUFFIX) or contents.other_weights([name])
    return size is not None and size <= MOST_TEXT_BYTES and not weights


def _source(store: Folder, file: str) -> Source:
    return Source(store.path / file, f"{store.location}/{file}")


def _lanes(tie: Tie, files: Mapping[str, FileLane]) -> list[PairLane]:
    """What has to be read to compare a pair: nothing, where they are of different dtypes."""
    if tie.dtypes[0] != tie.dtypes[1]:
        return []
    return [PairLane(_side(files, copy), _side(files, original), copy[1]) for copy, original in tie.places]


def _side(files: Mapping[str, FileLane], place: Place) -> tuple[Source, int]:
    """A tensor's file, and where in it the tensor begins."""
    file, tensor = place
    return files[file].source, files[file].header.data_start + tensor.begin


def _of_values(files: Mapping[str, FileLane]) -> Iterator[Finding]:
    """What there is to say of the values of all tensors."""
    zero = []
    matrices = 0
    for file, lane in files.items():
        for tensor in lane.header.tensors.values():
            values = lane.values.get(tensor.name, Values())
            if values.first is not None:
                yield says.nonfinite(file, tensor, values)
            if len(tensor.shape) > 1 and values.bytes:
                matrices += 1
                if values.zero and values.bytes == tensor.end - tensor.begin:
                    zero.append((file, tensor))
    yield from says.zeros(zero, matrices)
