"""Fetching a checkpoint into the local Hub cache, by huggingface_hub and with its progress bars."""

from __future__ import annotations

from glob import escape
from pathlib import Path

from atlas.checkpoint import contents, index
from atlas.checkpoint.hub import Refusals, offline
from atlas.checkpoint.remote import Repository
from atlas.checkpoint.snapshot import complete
from atlas.errors import CheckpointError
from atlas.version import __version__


def download(repo: str, revision: str | None = None, *, progress: bool = True) -> Path:
    """The folder of the snapshot, fetched as far as it was not there, and taken up again where a download broke off.

    Of the weights only those that are the model, not a second copy of them beside it; of the rest the JSON files.

    Args:
        progress: draw huggingface_hub's bars on stderr, which it does whether or not that is a terminal.

    Raises:
        HubError: access is refused, the Hub cannot be reached, or the download broke off.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    if not progress:
        disable_progress_bars()
    snapshot = complete(repo, revision)
    if snapshot is not None and offline():
        return snapshot.path
    repository = Repository(repo, revision)
    wanted = [name for name in repository.files() if name.endswith(".json")] + _weights(repository)
    with Refusals(repo):
        folder = snapshot_download(
            repo,
            revision=revision,
            allow_patterns=[escape(name) for name in wanted],
            library_name="open-model-atlas",
            library_version=__version__,
        )
    return Path(folder)


def _weights(repository: Repository) -> list[str]:
    names = repository.files()
    listed = contents.index_of(names)
    if listed is not None:
        try:
            return list(index.parse(repository.text(listed), listed, listed).files())
        except CheckpointError:
            pass  # it is fetched, and it is for the verifier to say what is wrong with it
    return list(contents.series(contents.weights(names)).files)
