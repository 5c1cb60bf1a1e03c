"""`atlas.verify`: where a checkpoint's files are, and the check of one checkpoint."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from atlas.checkpoint.hub_url import HubURL, repository
from atlas.checkpoint.store import Store
from atlas.errors import UsageError
from atlas.spec.folders import Folders, open_library
from atlas.verification import Verification
from atlas.verification import verify as verified


def verify(
    path: str | os.PathLike[str] | None = None,
    *,
    repo: str | None = None,
    revision: str | None = None,
    model: str | None = None,
    deep: bool = False,
    download: bool = False,
    ignore: Collection[str] = (),
    strict: bool = False,
    release: bool = False,
    specs: Folders = (),
) -> Verification:
    """See `atlas.verify`."""
    if (path is None) == (repo is None):
        raise UsageError("give either a path or repo=…")
    if path is not None and not os.fspath(path):
        raise UsageError("the path is empty")
    if path is not None and (revision or download):
        raise UsageError("a path is on disk: revision and download are for repo=…")
    if deep:
        from atlas.verification.deep import require_extra

        require_extra()
    library = open_library(specs)
    where = repository(repo) if repo is not None else Path(os.fspath(path or "")).expanduser()
    store, only = open_store(where, revision, download=download, deep=deep)
    return verified(
        store,
        library,
        only=only,
        model=model,
        repo=where.repo if isinstance(where, HubURL) else None,
        ignore=finding_codes([ignore] if isinstance(ignore, str) else ignore),
        strict=strict,
        release=release,
        deep=deep,
    )


def open_store(
    where: Path | HubURL, revision: str | None, *, download: bool, deep: bool, progress: bool = False
) -> tuple[Store, str | None]:
    """The store of a checkpoint's files, and the one file of it that a path names.

    Args:
        where: a path on disk, or an address on the Hub.
        download: fetch the repository first.
        deep: the data will be read, so headers on the Hub are not enough.
        progress: draw bars while downloading.

    Raises:
        UsageError: `deep`, and the data is not on disk.
    """
    if isinstance(where, Path):
        from atlas.checkpoint import local

        return local.at(where)
    revision, only = revision or where.revision, _weight_file(where.path)
    if download:
        from atlas.checkpoint.download import download as fetch
        from atlas.checkpoint.snapshot import Snapshot

        return Snapshot(fetch(where.repo, revision, progress=progress)), only
    if deep:
        from atlas.checkpoint.snapshot import complete

        if snapshot := complete(where.repo, revision):
            return snapshot, only
        raise UsageError(
            f"{where.repo}: --deep reads the data, but the local cache has no complete copy of it",
            hint="download it with --download",
        )
    from atlas.checkpoint.remote import open_repository

    return open_repository(where.repo, revision), only


def _weight_file(path: str) -> str | None:
    """The file of a URL, if it is weights or an index; the URL of another file means its repository."""
    return path if path.endswith((".safetensors", ".safetensors.index.json")) else None


def finding_codes(words: Collection[str]) -> frozenset[str]:
    """The codes in `dtype,tied`.

    Raises:
        UsageError: a code does not exist.
    """
    from atlas.checkpoint.findings import CODES

    codes = frozenset(code.strip().lower() for word in words for code in word.split(",") if code.strip())
    if unknown := sorted(codes.difference(CODES)):
        raise UsageError(
            f"--ignore: no finding has the code {', '.join(unknown)}",
            hint=f"the codes are {', '.join(CODES)}",
        )
    return codes
