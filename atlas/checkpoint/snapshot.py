"""A repository in the local Hub cache; often incomplete, because single files are fetched too."""

from __future__ import annotations

import os
from pathlib import Path

from atlas.checkpoint import adapter, cache, contents, index
from atlas.checkpoint.hub_errors import HubErrors
from atlas.checkpoint.paths import SHA256
from atlas.checkpoint.settings import offline, ready
from atlas.checkpoint.store import Folder
from atlas.errors import CheckpointError, HubError

CONFIGS = (*contents.CONFIGURATIONS, adapter.CONFIGURATION)
_MARKS = (*CONFIGS, contents.INDEX, "model" + contents.SUFFIX)


class Snapshot(Folder):
    """One commit of a repository in the local Hub cache."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, kind="cache", revision=path.name)

    def hashes(self) -> dict[str, str]:
        """File -> its SHA-256, of those that the Hub keeps in LFS: the cache calls their blobs by it."""
        blobs = {name: _linked(self.path / name) for name in self.files()}
        return {name: blob for name, blob in blobs.items() if SHA256.fullmatch(blob)}

    def lacking(self) -> tuple[str, ...]:
        """The configuration and weight files that are missing from a complete checkpoint."""
        there = {name for name, size in self.files().items() if size is not None}
        lacking = () if there.intersection(CONFIGS) else CONFIGS[:1]
        return (*lacking, *sorted(name for name in self._weights(there) if not _is_file(self.path / name)))

    def _weights(self, there: set[str]) -> tuple[str, ...]:
        index_name = contents.index_of(there)
        if index_name is not None:
            try:
                return index.parse(self.text(index_name), index_name, index_name).files()
            except CheckpointError:
                return ()  # the index is there, and the verifier reports its fault
        found = contents.series(contents.weights(there))
        return (*found.files, *found.absent) or ("model" + contents.SUFFIX,)


def complete(repo: str, revision: str | None = None) -> Snapshot | None:
    """The snapshot of a repository, if it is complete.

    Raises:
        HubError: it is incomplete, and HF_HUB_OFFLINE forbids fetching the rest.
    """
    snapshot = cached(repo, revision)
    lacking = snapshot.lacking() if snapshot else ()
    if snapshot and not lacking:
        return snapshot
    if offline():
        more = f" and {len(lacking) - 3:,} more" if len(lacking) > 3 else ""
        there = (
            f"in the local cache without {', '.join(lacking[:3])}{more}"
            if snapshot
            else "not in the local cache"
        )
        raise HubError(
            f"{repo} is {there}, and HF_HUB_OFFLINE is set", hint="unset it to ask the Hub", code="offline"
        )
    return None


def cached(repo: str, revision: str | None = None) -> Snapshot | None:
    """The snapshot of a branch, a tag or a commit in the local cache, complete or not (see `lacking`).

    Raises:
        HubError: that is no repository's name, or the cache cannot be read.
    """
    ready()
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    with HubErrors(repo):
        validate_repo_id(repo)
        path = cache.snapshot(repo, revision)
        if path is not None and any(_is_file(path / name) for name in _MARKS):
            return Snapshot(path)
    return None


def _is_file(path: Path) -> bool:
    """Whether it is a regular file; not where its name is none, or links lead in a circle."""
    return os.path.isfile(path)


def _linked(path: Path) -> str:
    """The name of the blob that a file of a snapshot is a link to; one step, since a blob may itself be a link."""
    try:
        target = os.readlink(path)
    except OSError:
        return ""
    folder, name = os.path.split(os.path.normpath(path.parent / target))
    return name if folder == str(path.parents[2] / "blobs") else ""
