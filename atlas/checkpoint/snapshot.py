"""A repository as the local Hub cache holds it: often not all of it, because people fetch single files too."""

from __future__ import annotations

import re
from pathlib import Path

from atlas.checkpoint import adapter, contents, index
from atlas.checkpoint.client import offline, ready
from atlas.checkpoint.refusals import Refusals
from atlas.checkpoint.store import Folder
from atlas.errors import CheckpointError, HubError

CONFIGS = (*contents.CONFIGURATIONS, adapter.CONFIGURATION)
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Snapshot(Folder):
    """One commit of a repository in the local Hub cache."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, kind="cache", revision=path.name)

    def hashes(self) -> dict[str, str]:
        """File -> its SHA-256, of those that the Hub keeps in LFS: the cache calls their blobs by it."""
        blobs = {name: (self.path / name).resolve().name for name in self.files()}
        return {name: blob for name, blob in blobs.items() if _SHA256.fullmatch(blob)}

    def lacking(self) -> tuple[str, ...]:
        """Files without which this is not a whole checkpoint: of its configuration and its weights."""
        there = {name for name, size in self.files().items() if size is not None}
        lacking = () if there.intersection(CONFIGS) else CONFIGS[:1]
        return (*lacking, *sorted(name for name in self._weights(there) if not (self.path / name).is_file()))

    def _weights(self, there: set[str]) -> tuple[str, ...]:
        listed = contents.index_of(there)
        if listed is not None:
            try:
                return index.parse(self.text(listed), listed, listed).files()
            except CheckpointError:
                return ()  # the index is there, and it is for the verifier to say what is wrong with it
        found = contents.series(contents.weights(there))
        return (*found.files, *found.absent) or ("model" + contents.SUFFIX,)


def complete(repo: str, revision: str | None = None) -> Snapshot | None:
    """The snapshot of a repository, if nothing is lacking.

    Raises:
        HubError: something is, and HF_HUB_OFFLINE forbids to ask for it.
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
    """What there is of a branch, a tag or a commit in the local cache; `lacking` says whether that is enough.

    Raises:
        HubError: that is no repository's name.
    """
    ready()
    from huggingface_hub import try_to_load_from_cache

    with Refusals(repo):
        for name in (*CONFIGS, contents.INDEX, "model" + contents.SUFFIX):
            path = try_to_load_from_cache(repo, name, revision=revision)
            if isinstance(path, str):
                return Snapshot(Path(path).parent)
    return None
