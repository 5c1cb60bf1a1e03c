"""Read the data of a checkpoint once, and report what is wrong with it."""

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
from atlas.verification.comparison import Comparison
from atlas.verification.deep import findings as messages
from atlas.verification.deep.blocks import block_bytes
from atlas.verification.deep.copies import Place, Replica, Tie, replicas, ties
from atlas.verification.deep.memory_map import Source, can_catch_sigbus, catch_sigbus, stamp
from atlas.verification.deep.recorded import Recorded, recorded
from atlas.verification.deep.thread_pool import ThreadPool, useful_threads
from atlas.verification.deep.values import Values
from atlas.verification.deep.work_items import FileReading, PairComparison

OnProgress = Callable[[str, int, int], None]
"""A callback: what is being done, the bytes done so far, and the bytes to do."""


@dataclass(frozen=True, slots=True)
class Deep:
    """The result of reading the data.

    Attributes:
        findings: `nonfinite`, `zero`, `hash`; `tied` or `redundant` of a pair; `duplicate` if devices' copies differ; files
            that could not be read to their end.
        compared: the names of the copies that were compared.
        hashes: file -> its SHA-256, for each file whose SHA-256 was computed.
        checked: file -> the record its hash was compared with, for each file with a recorded hash.
    """

    findings: tuple[Finding, ...]
    compared: frozenset[str]
    hashes: Mapping[str, str]
    checked: Mapping[str, str]
    bytes_read: int

    def merged_with(self, findings: Iterable[Finding]) -> list[Finding]:
        """The headers' findings and these, without notes on copies that have now been compared."""
        kept = [found for found in findings if found.code != "redundant" or found.tensor not in self.compared]
        return [*kept, *self.findings]


def check(
    inventory: Inventory,
    comparison: Comparison | None = None,
    *,
    hash_all: bool = False,
    threads: int | None = None,
    on_progress: OnProgress | None = None,
) -> Deep:
    """Read the data of a checkpoint on disk.

    Args:
        comparison: the comparison with the description; without it no tensor is known to be tied.
        hash_all: compute the SHA-256 of weight files even if no hash is recorded.
        threads: by default as many as there are processors, up to 8.
        on_progress: called about ten times a second.

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
    workers = threads or useful_threads()
    size = block_bytes(workers)
    small_files = _small_files(store)
    known, findings = recorded(store, [*inventory.headers, *small_files])
    files = {
        file: FileReading(_source(store, file, header), header, algorithms, size)
        for file, header, algorithms in _wanted(inventory, small_files, known, hash_all)
    }
    pairs = [(tie, _items(tie, files, size)) for tie in (ties(comparison) if comparison else ())]
    copies = [
        (replica, _item(replica.copy, replica.original, files, size))
        for replica in (replicas(comparison) if comparison else ())
    ]
    compared = [item for _, pair in pairs for item in pair]
    items: list[FileReading | PairComparison] = [*files.values(), *compared, *(item for _, item in copies)]
    total = sum(item.bytes for item in items)
    with catch_sigbus() as handler:

        def tick(done: int) -> None:
            handler()
            if on_progress is not None:
                on_progress("reading the data", done, total)

        bytes_read = ThreadPool(items, tick).run(workers)
    readable = [(tie, pair) for tie, pair in pairs if not any(item.error for item in pair)]
    return Deep(
        findings=(
            *findings,
            *_of_files(files, known),
            *_of_values(files),
            *_of_pairs(readable),
            *_of_replicas(copies),
        ),
        compared=frozenset(tie.copy for tie, _ in readable),
        hashes={file: digest for file, item in files.items() if (digest := item.digest("sha256"))},
        checked={
            file: known[file].where
            for file, item in files.items()
            if file in known and item.digest(known[file].algorithm)
        },
        bytes_read=bytes_read,
    )


def _source(store: Folder, file: str, header: Header) -> Source:
    path = store.path / file
    return Source(path, f"{store.location}/{file}", can_catch_sigbus(), stamp(path, header.file_bytes))


def _small_files(store: Folder) -> dict[str, int]:
    """The files next to the weights, such as the tokenizer and the configuration, and their sizes."""
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
    """Whether it is a regular file: reading a FIFO might wait forever."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _wanted(
    inventory: Inventory, small_files: Mapping[str, int], known: Mapping[str, Recorded], hash_all: bool
) -> Iterator[tuple[str, Header, set[str]]]:
    """The files to read and the hashes to compute: the weight files, and small files whose hash is recorded."""
    for file, header in inventory.headers.items():
        algorithms = {"sha256"} if hash_all else set()
        if file in known:
            algorithms.add(known[file].algorithm)
        if header.file_bytes < header.data_start + header.data_bytes:
            algorithms.clear()  # the hash of a truncated file is always wrong, and it is reported already
        yield file, header, algorithms
    for file in known:
        if file in small_files:
            yield file, Header({}, {}, 0, 0, small_files[file]), {known[file].algorithm}


def _items(tie: Tie, files: Mapping[str, FileReading], size: int) -> list[PairComparison]:
    """What has to be read to compare a pair: nothing if their dtypes differ."""
    if tie.dtypes[0] != tie.dtypes[1]:
        return []
    return [_item(copy, original, files, size) for copy, original in tie.places]


def _item(copy: Place, original: Place, files: Mapping[str, FileReading], size: int) -> PairComparison:
    return PairComparison(_side(files, copy), _side(files, original), copy[1], size)


def _side(files: Mapping[str, FileReading], place: Place) -> tuple[Source, int]:
    """A tensor's file, and the byte at which the tensor begins."""
    file, tensor = place
    return files[file].source, files[file].header.data_start + tensor.begin


def _of_files(files: Mapping[str, FileReading], known: Mapping[str, Recorded]) -> Iterator[Finding]:
    """Findings about whole files."""
    for file, item in files.items():
        if item.error is not None:
            yield messages.not_read(file, item.error)
        digest = item.digest(known[file].algorithm) if file in known else None
        if digest is not None and digest != known[file].digest:
            yield messages.other_bytes(file, digest, known[file])


def _of_values(files: Mapping[str, FileReading]) -> Iterator[Finding]:
    """Findings about the values of all tensors."""
    zero, nonfinite = [], []
    matrices = 0
    for file, item in files.items():
        for tensor in item.header.tensors.values():
            values = item.values.get(tensor.name, Values())
            if values.first is not None:
                nonfinite.append((file, tensor, values))
            if len(tensor.shape) > 1 and values.bytes:
                matrices += 1
                if values.zero and values.bytes == tensor.end - tensor.begin:
                    zero.append((file, tensor))
    yield from messages.nonfinite(nonfinite)
    yield from messages.zeros(zero, matrices)


def _of_pairs(pairs: Iterable[tuple[Tie, Sequence[PairComparison]]]) -> Iterator[Finding]:
    """Findings about tied matrices that could be read."""
    for tie, items in pairs:
        first = next((item.first for item in items if item.first is not None), None)
        found = messages.tied(tie, sum(item.differing for item in items), first)
        if found is not None:
            yield found


def _of_replicas(copies: Iterable[tuple[Replica, PairComparison]]) -> Iterator[Finding]:
    """Findings about devices whose copies differ from the first device's."""
    unequal: dict[tuple[str, str], list[tuple[Replica, PairComparison]]] = {}
    for replica, item in copies:
        if item.error is None and item.first is not None:
            unequal.setdefault((replica.copy[0], replica.original[0]), []).append((replica, item))
    for (file, other), found in unequal.items():
        replica, item = found[0]
        yield messages.unequal_replicas(
            file, other, replica.copy[1], [each.name for each, _ in found], item.differing, item.first
        )
