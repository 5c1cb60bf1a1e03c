"""A repository on the Hub, read remotely: the listing, small files, and the header of each weight file.

The listing gives the commit, to which every later request is pinned, and the size of every file. Two round trips are
enough: the small files and the likely headers are requested together, before the index has been read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, as_completed
from dataclasses import replace
from functools import partial

from atlas.checkpoint import contents
from atlas.checkpoint.header import Examined, Fault, examine
from atlas.checkpoint.http_session import HttpSession
from atlas.checkpoint.hub_listing import fetch_listing
from atlas.checkpoint.ranges import Reader
from atlas.checkpoint.snapshot import CONFIGS, Snapshot, complete
from atlas.checkpoint.store import MOST_TEXT_BYTES
from atlas.checkpoint.workers import submit
from atlas.errors import CheckpointError, HubError

# A new connection carries ten segments in its first round trip and twenty in its second (RFC 6928), 43,000 bytes. Of the
# thousand most used models on the Hub, 82 % had a header of under 25 kB, 97 % of under 100 kB (huggingface_hub's pull
# requests 1855 and 1951).
_FIRST_BYTES = 40_000
_LEAST_FIRST_BYTES = 4_096
_MOST_FIRST_BYTES = 2**20
MOST_WEIGHT_FILES = 10_000
"""Each takes a request; the most of a published model are a few hundred."""

_PUBLISHED = "the file on the Hub has this fault; its publisher must replace it"


def check_file_count(repo: str, files: Collection[str], how: str) -> None:
    """Refuse too many weight files before any is requested.

    Args:
        how: where the names come from: `listed`, or `named by its index`.

    Raises:
        HubError: they are too many.
    """
    if len(files) > MOST_WEIGHT_FILES:
        raise HubError(
            f"{repo}: {len(files):,} weight files are {how}; at most {MOST_WEIGHT_FILES:,} are read over the network",
            code="listing",
        )


def open_repository(repo: str, revision: str | None = None) -> Snapshot | Repository:
    """The complete snapshot in the local Hub cache, else the repository on the Hub.

    Raises:
        HubError: there is no such repository or revision, access is refused, the Hub cannot be reached, or must not be.
    """
    snapshot = complete(repo, revision)
    if snapshot is not None:
        return snapshot
    repository = Repository(repo, revision)
    repository.prefetch()
    return repository


class Repository:
    """A repository on the Hub at one commit; files in its folders are read only where an index names them."""

    kind = "hub"

    def __init__(self, repo: str, revision: str | None = None) -> None:
        self.location = repo
        self._session = HttpSession()
        found = fetch_listing(repo, revision, self._session)
        self.revision, self._everything, self._hashes = found.commit, found.sizes, found.hashes
        self._sizes = {name: size for name, size in found.sizes.items() if "/" not in name}
        weights = contents.weights(self._sizes)
        check_file_count(repo, weights, "listed")
        self._reader = Reader(repo, self.revision, self._session)
        self._model = contents.series(weights).files
        self._first_bytes = _first_bytes(self._sizes, self._model)
        self._texts: dict[str, Future[bytes]] = {}
        self._headers: dict[str, Future[Examined]] = {}

    @property
    def requests(self) -> int:
        """Requests sent so far, those for the listing among them."""
        return self._session.requests

    @property
    def bytes_read(self) -> int:
        """Bytes of files read so far, the listing not among them."""
        return self._session.bytes_read

    @property
    def reader(self) -> Reader:
        """Reads files at the commit."""
        return self._reader

    def files(self) -> Mapping[str, int]:
        return self._sizes

    def below(self, names: Iterable[str]) -> Mapping[str, int]:
        return {name: self._everything[name] for name in names if name in self._everything}

    def hashes(self) -> Mapping[str, str]:
        """File -> its SHA-256, of those that the Hub keeps in LFS."""
        return self._hashes

    def prefetch(self) -> None:
        """Request what a check will need: configuration, index, and the headers of the likely model files."""
        for name in (*CONFIGS, contents.index_of(self._sizes)):
            if name in self._sizes:
                self._texts[name] = submit(partial(self._text, name))
        for name in self._model:
            self._headers[name] = self._submit_examine(name)

    def text(self, name: str) -> bytes:
        if name not in self._texts:
            self._texts[name] = submit(partial(self._text, name))
        try:
            return self._texts[name].result()
        except (HubError, KeyboardInterrupt):
            self._cancel_pending()
            raise

    def examine(self, names: Iterable[str]) -> Iterator[tuple[str, Examined]]:
        names = list(names)
        check_file_count(self.location, names, "named by its index")
        asked = {
            self._headers.pop(name) if name in self._headers else self._submit_examine(name): name
            for name in names
        }
        try:
            for future in as_completed(asked):
                yield asked[future], future.result()
        finally:
            for future in asked:
                future.cancel()
            self._cancel_pending()

    def _submit_examine(self, name: str) -> Future[Examined]:
        return submit(partial(self._examine, name))

    def _text(self, name: str) -> bytes:
        file_bytes = self._sizes.get(name)
        if file_bytes is None:
            problem = "cannot be read: it is not in the repository"
        elif file_bytes > MOST_TEXT_BYTES:
            problem = f"it is {file_bytes:,} bytes long; the limit for such a file is {MOST_TEXT_BYTES:,}"
        else:
            return self._reader.whole(name, file_bytes)
        raise CheckpointError(f"{self.location}/{name}: {problem}", code="config")

    def _examine(self, name: str) -> Examined:
        where, file_bytes = f"{self.location}/{name}", self._everything.get(name)
        if file_bytes is None:
            fault = Fault("header", f"{where}: the file cannot be read: it is not in the repository")
            return Examined(None, (fault,))
        first = self._first_bytes.get(name, _FIRST_BYTES)
        prefix = self._reader.prefix(name, first, file_bytes) if file_bytes else b""
        found = examine(prefix, file_bytes, where)
        return replace(found, faults=tuple(replace(fault, hint=_PUBLISHED) for fault in found.faults))

    def _cancel_pending(self) -> None:
        """Cancel prefetched requests that have not been sent."""
        for futures in (self._texts, self._headers):
            for name in [name for name, future in futures.items() if future.cancel()]:
                del futures[name]


def _first_bytes(sizes: Mapping[str, int], model: Collection[str]) -> dict[str, int]:
    """How many bytes of each weight file to request first, where there is an index.

    Its lines are two thirds as long as the entries of the headers, and a shard's share in them is about its share in the
    weights. Twice that share covered every header of ten published checkpoints, so that none took a second request.
    """
    index_name = contents.index_of(sizes)
    if index_name is None:
        return {}
    total = sum(sizes[name] for name in model)
    shares = {name: 2 * sizes[index_name] * sizes[name] // max(total, 1) for name in model}
    return {name: min(max(share, _LEAST_FIRST_BYTES), _MOST_FIRST_BYTES) for name, share in shares.items()}
