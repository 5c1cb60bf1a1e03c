"""Downloads a checkpoint into the local Hub cache: the files of one commit, eight at a time.

The files are fetched over plain HTTP by the reader that also fetches headers, within its bounds, and compared with the
hashes that the listing states. huggingface_hub's own download builds paths from server headers, and its Xet client takes URLs
from them and has no deadline.

On Ctrl-C, `atlas.cli` removes partial files and ends the process without waiting for the threads. Complete files stay in
the cache, and the next download continues from there.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO

from atlas.checkpoint import cache, contents, index
from atlas.checkpoint.hub_errors import HubErrors
from atlas.checkpoint.remote import Repository, check_file_count
from atlas.checkpoint.retry import with_retries
from atlas.checkpoint.settings import http, offline, ready
from atlas.checkpoint.snapshot import complete
from atlas.checkpoint.workers import submit
from atlas.errors import CheckpointError, HubError

AT_ONCE = 8
"""Files fetched in parallel."""
_LEAST_PROGRESS_BYTES = 2**20
"""Bytes that a connection must have delivered for another one to be tried beyond the retry policy."""
_STOPPING_SECONDS = 2.0
"""How long a failed download waits for its other threads."""
_PARTIAL = re.compile(r".*\.[0-9a-f]{8}\.incomplete")


def download(repo: str, revision: str | None = None, *, progress: bool = True) -> Path:
    """Fetch the missing files of a snapshot and return its folder.

    Of the weights only those that are the model, not a second copy of them next to it; of the other files the JSON files.

    Args:
        progress: draw a bar on stderr, whether or not that is a terminal.

    Raises:
        HubError: access is refused, the Hub cannot be reached, or the download failed.
    """
    ready()
    snapshot = complete(repo, revision)
    if snapshot is not None and offline():
        return snapshot.path
    repository = Repository(repo, revision)
    sizes = {name: repository.below([name]).get(name) for name in _wanted(repository)}
    wanted = {name: size for name, size in sizes.items() if size is not None}
    folder = cache.root(repo) / "snapshots" / repository.revision
    with HubErrors(repo):
        missing = {name: size for name, size in wanted.items() if not _is_there(folder / name, size)}
        folder.mkdir(parents=True, exist_ok=True)
        _check_space(folder, sum(missing.values()), repo)
        _Download(repository, missing).run(progress)
        cache.point(repo, revision, repository.revision)
    return folder


class _Download:
    """Fetches files of one repository with several threads."""

    def __init__(self, repository: Repository, missing: dict[str, int]) -> None:
        self._repository = repository
        self._total = sum(missing.values())
        self._waiting: SimpleQueue[tuple[str, int]] = SimpleQueue()
        for item in sorted(missing.items(), key=lambda item: item[1]):
            self._waiting.put(item)
        self._threads = min(AT_ONCE, len(missing))
        self._stopped = threading.Event()
        self.received = 0
        self._counting = threading.Lock()

    def run(self, progress: bool) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        futures = [submit(self._fetch_files) for _ in range(self._threads)]
        bar = tqdm(
            total=self._total,
            desc="Downloading",
            unit="B",
            unit_scale=True,
            disable=not progress,
            leave=False,
        )
        try:
            for came in self._until_done(futures):
                bar.update(came - bar.n)
        except Exception:  # not of Ctrl-C, which waits for nobody
            self._stopped.set()
            wait(futures, timeout=_STOPPING_SECONDS)
            remove_partial_files(cache.root(self._repository.location))
            raise
        finally:
            self._stopped.set()
            bar.close()

    def _until_done(self, futures: list[Future[None]]) -> Iterator[int]:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when="FIRST_EXCEPTION")
            for future in done:
                future.result()
            yield self.received

    def _fetch_files(self) -> None:
        with suppress(Empty):
            while not self._stopped.is_set():
                name, size = self._waiting.get_nowait()
                with HubErrors(self._repository.location, name):
                    hashes = self._repository.hashes()
                    fetch = partial(self._fetch, name, size)
                    repo, commit = self._repository.location, self._repository.revision
                    cache.store(repo, commit, name, size, hashes.get(name), fetch)

    def _fetch(self, name: str, size: int, file: BinaryIO) -> None:
        while (begin := file.tell()) < size:
            try:
                with_retries(partial(self._fetch_rest, name, size, file))
            except http().HTTPError:
                if file.tell() - begin < _LEAST_PROGRESS_BYTES:
                    raise

    def _fetch_rest(self, name: str, size: int, file: BinaryIO) -> None:
        def write(piece: bytes) -> None:
            if self._stopped.is_set():
                raise HubError(
                    f"{self._repository.location}/{name}: the download was stopped", code="transfer"
                )
            file.write(piece)
            with self._counting:
                self.received += len(piece)

        if file.tell() < size:
            self._repository.reader.read_from(name, file.tell(), size, write)


def remove_partial_files(below: Path | None = None) -> None:
    """Remove the partial files that this process is writing, where the system lists them (Linux).

    Args:
        below: only those in this folder.
    """
    within = "" if below is None else os.path.join(os.path.realpath(below), "")
    with suppress(OSError):
        for handle in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                path = os.readlink(f"/proc/self/fd/{handle}")
                if _PARTIAL.fullmatch(path) and path.startswith(within):
                    os.unlink(path)


def _is_there(path: Path, size: int) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) == size


def _check_space(folder: Path, needed: int, repo: str) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise HubError(
            f"{repo}: the download needs {needed:,} bytes, the disk of {folder} has {free:,} free",
            hint="free some space, or set HF_HOME to a folder on another disk",
            code="cache",
        )


def _wanted(repository: Repository) -> list[str]:
    return [name for name in repository.files() if name.endswith(".json")] + _weights(repository)


def _weights(repository: Repository) -> list[str]:
    names = repository.files()
    index_name = contents.index_of(names)
    if index_name is not None:
        try:
            files = index.parse(repository.text(index_name), index_name, index_name).files()
            check_file_count(repository.location, files, "named by its index")
            return list(files)
        except CheckpointError:
            pass  # the index is fetched, and the verifier reports its fault
    return list(contents.series(contents.weights(names)).files)
