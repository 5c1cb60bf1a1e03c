"""Fetching a checkpoint into the local Hub cache: the files of one commit, eight at a time.

The files are fetched over plain HTTP by the reader that also fetches headers, within its bounds, and compared with the
hashes that the listing states. huggingface_hub's own download would build paths from headers of the server, and its Xet
client takes addresses from them and cannot be given a deadline.

Ctrl-C reaches who waits for the threads here, and `atlas.cli` then sweeps up and ends the process without waiting. Whole
files stay in the cache, and another download goes on from there.
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
from atlas.checkpoint.client import http, offline, ready
from atlas.checkpoint.patience import patiently
from atlas.checkpoint.refusals import Refusals
from atlas.checkpoint.remote import Repository, require_few
from atlas.checkpoint.snapshot import complete
from atlas.checkpoint.workers import submit
from atlas.errors import CheckpointError, HubError

AT_ONCE = 8
"""Files that are fetched at the same time."""
_WORTH_GOING_ON = 2**20
"""Bytes that must have come since a connection failed, for another to be tried beyond the retry policy."""
_STOPPING_SECONDS = 2.0
"""How long a failed download waits for its other files to be let go."""
_PARTIAL = re.compile(r".*\.[0-9a-f]{8}\.incomplete")


def download(repo: str, revision: str | None = None, *, progress: bool = True) -> Path:
    """The folder of the snapshot, of which the files are fetched that are not there yet.

    Of the weights only those that are the model, not a second copy of them beside it; of the rest the JSON files.

    Args:
        progress: draw a bar on stderr, whether or not that is a terminal.

    Raises:
        HubError: access is refused, the Hub cannot be reached, or the download broke off.
    """
    ready()
    snapshot = complete(repo, revision)
    if snapshot is not None and offline():
        return snapshot.path
    repository = Repository(repo, revision)
    sizes = {name: repository.below([name]).get(name) for name in _wanted(repository)}
    wanted = {name: size for name, size in sizes.items() if size is not None}
    folder = cache.root(repo) / "snapshots" / repository.revision
    with Refusals(repo):
        missing = {name: size for name, size in wanted.items() if not _is_there(folder / name, size)}
        folder.mkdir(parents=True, exist_ok=True)
        _check_space(folder, sum(missing.values()), repo)
        _Download(repository, missing).run(progress)
        cache.point(repo, revision, repository.revision)
    return folder


class _Download:
    """Files of one repository that several threads fetch."""

    def __init__(self, repository: Repository, missing: dict[str, int]) -> None:
        self._repository = repository
        self._total = sum(missing.values())
        self._waiting: SimpleQueue[tuple[str, int]] = SimpleQueue()
        for item in sorted(missing.items(), key=lambda item: item[1]):
            self._waiting.put(item)
        self._lanes = min(AT_ONCE, len(missing))
        self._stopped = threading.Event()
        self._came = 0
        self._counting = threading.Lock()

    def run(self, progress: bool) -> None:
        from tqdm import tqdm  # type: ignore[import-untyped]

        lanes = [submit(self._lane) for _ in range(self._lanes)]
        bar = tqdm(
            total=self._total,
            desc="Downloading",
            unit="B",
            unit_scale=True,
            disable=not progress,
            leave=False,
        )
        try:
            for came in self._until_done(lanes):
                bar.update(came - bar.n)
        except Exception:  # not of Ctrl-C, which waits for nobody
            self._stopped.set()
            wait(lanes, timeout=_STOPPING_SECONDS)
            sweep(cache.root(self._repository.location))
            raise
        finally:
            self._stopped.set()
            bar.close()

    def _until_done(self, lanes: list[Future[None]]) -> Iterator[int]:
        pending = set(lanes)
        while pending:
            done, pending = wait(pending, timeout=0.2, return_when="FIRST_EXCEPTION")
            for lane in done:
                lane.result()
            yield self._came

    def _lane(self) -> None:
        with suppress(Empty):
            while not self._stopped.is_set():
                name, size = self._waiting.get_nowait()
                with Refusals(self._repository.location, name):
                    hashes = self._repository.hashes()
                    fetch = partial(self._fetch, name, size)
                    repo, commit = self._repository.location, self._repository.revision
                    cache.store(repo, commit, name, size, hashes.get(name), fetch)

    def _fetch(self, name: str, size: int, file: BinaryIO) -> None:
        while (begin := file.tell()) < size:
            try:
                patiently(partial(self._go_on, name, size, file))
            except http().HTTPError:
                if file.tell() - begin < _WORTH_GOING_ON:
                    raise

    def _go_on(self, name: str, size: int, file: BinaryIO) -> None:
        def write(piece: bytes) -> None:
            if self._stopped.is_set():
                raise HubError(
                    f"{self._repository.location}/{name}: the download was stopped", code="transfer"
                )
            file.write(piece)
            with self._counting:
                self._came += len(piece)

        if file.tell() < size:
            self._repository.reader.rest(name, file.tell(), size, write)


def sweep(below: Path | None = None) -> None:
    """Remove the partial files that this process is writing and nobody can use, where the system tells which (Linux).

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
            f"{repo}: {needed:,} bytes are to be fetched, and the disk of {folder} has {free:,} free",
            hint="free some space, or set HF_HOME to a folder on another disk",
            code="cache",
        )


def _wanted(repository: Repository) -> list[str]:
    return [name for name in repository.files() if name.endswith(".json")] + _weights(repository)


def _weights(repository: Repository) -> list[str]:
    names = repository.files()
    listed = contents.index_of(names)
    if listed is not None:
        try:
            files = index.parse(repository.text(listed), listed, listed).files()
            require_few(repository.location, files, "named by its index")
            return list(files)
        except CheckpointError:
            pass  # it is fetched, and it is for the verifier to say what is wrong with it
    return list(contents.series(contents.weights(names)).files)
