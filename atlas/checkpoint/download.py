"""Fetching a checkpoint into the local Hub cache, by huggingface_hub and with its progress bars.

It is done in another thread: huggingface_hub waits for its own threads where it is interrupted, to the end of the files
that are under way. Ctrl-C reaches who waits for the thread here, and `atlas.cli` then sweeps up and ends the process
without waiting. Whole files stay in the cache, and another download goes on from there.
"""

from __future__ import annotations

import logging
import os
import re
from contextlib import suppress
from functools import partial
from glob import escape
from pathlib import Path

from atlas.checkpoint import contents, index
from atlas.checkpoint.client import offline, ready
from atlas.checkpoint.refusals import Refusals, not_taken
from atlas.checkpoint.remote import Repository
from atlas.checkpoint.snapshot import complete
from atlas.checkpoint.workers import submit
from atlas.errors import CheckpointError
from atlas.version import __version__

# huggingface_hub 2 names them for one download alone, so that no other can go on with them.
_PARTIAL = re.compile(r".*\.[0-9a-f]{8}\.incomplete")


def download(repo: str, revision: str | None = None, *, progress: bool = True) -> Path:
    """The folder of the snapshot, of which the files are fetched that are not there yet.

    Of the weights only those that are the model, not a second copy of them beside it; of the rest the JSON files.

    Args:
        progress: draw huggingface_hub's bars on stderr, which it does whether or not that is a terminal.

    Raises:
        HubError: access is refused, the Hub cannot be reached, or the download broke off.
    """
    ready()
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    if not progress:
        disable_progress_bars()
    snapshot = complete(repo, revision)
    if snapshot is not None and offline():
        return snapshot.path
    repository = Repository(repo, revision)
    wanted = [name for name in repository.files() if name.endswith(".json")] + _weights(repository)
    fetch = partial(
        snapshot_download,
        repo,
        revision=revision,
        allow_patterns=[escape(name) for name in wanted],
        library_name="open-model-atlas",
        library_version=__version__,
    )
    # What fails is told here, in one line, and without the signed addresses that it would print.
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    try:
        with Refusals(repo):
            return Path(submit(fetch).result())
    except ValueError as error:
        raise not_taken(repo, error) from None


def sweep() -> None:
    """Remove the partial files that this process is writing and nobody can use, where the system tells which (Linux)."""
    with suppress(OSError):
        for handle in os.listdir("/proc/self/fd"):
            with suppress(OSError):
                path = os.readlink(f"/proc/self/fd/{handle}")
                if _PARTIAL.fullmatch(path):
                    os.unlink(path)


def _weights(repository: Repository) -> list[str]:
    names = repository.files()
    listed = contents.index_of(names)
    if listed is not None:
        try:
            return list(index.parse(repository.text(listed), listed, listed).files())
        except CheckpointError:
            pass  # it is fetched, and it is for the verifier to say what is wrong with it
    return list(contents.series(contents.weights(names)).files)
