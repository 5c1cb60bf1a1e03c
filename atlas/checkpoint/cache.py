"""One repository's folder in the local Hub cache: its refs, snapshots and blobs, read and written.

The layout is huggingface_hub's, so other programs find what the atlas fetched. Nothing that a server
sends becomes part of a path unless it is a commit of 40 digits or a name that the listing's check has passed: a file is
stored under the hash of its bytes, computed here, which is what the Hub states as its ETag.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from atlas.checkpoint.paths import COMMIT, portable, possible
from atlas.errors import CheckpointError, HubError, UsageError, shown
from atlas.files import read_regular, write_whole

_MOST_REF_BYTES = 1_000
_AGAIN = "remove it so that it is fetched again, or set HF_HOME to another folder"


def root(repo: str) -> Path:
    """The folder of a repository, whose name has been checked.

    Raises:
        HubError: the setting begins with the home folder of a user who does not exist.
    """
    from huggingface_hub import constants

    if not str(constants.HF_HUB_CACHE):
        raise HubError(
            "HF_HUB_CACHE is empty; expected a folder", hint="set it to a folder or unset it", code="settings"
        )
    try:
        cache = Path(constants.HF_HUB_CACHE).expanduser()
    except RuntimeError:
        raise HubError(
            f"the Hub cache is set to {shown(constants.HF_HUB_CACHE)}: there is no home folder of that user",
            hint="check HF_HUB_CACHE and HF_HOME",
            code="settings",
        ) from None
    return cache / f"models--{repo.replace('/', '--')}"


def snapshot(repo: str, revision: str | None) -> Path | None:
    """The folder of a branch, a tag or a commit; None where there is none.

    Raises:
        HubError: what the cache holds for it cannot be read, or is no commit.
    """
    folder = root(repo)
    commit = _commit(folder, "main" if revision is None else revision)
    if commit is None:
        return None
    path = folder / "snapshots" / commit
    try:
        os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, error.strerror) from None
    return path


def _commit(folder: Path, revision: str) -> str | None:
    if COMMIT.fullmatch(revision):
        return revision
    if not possible(revision) or not portable(revision):
        return None
    ref = folder / "refs" / revision
    try:
        os.stat(ref)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(ref, error.strerror) from None
    try:
        data = read_regular(ref, most=_MOST_REF_BYTES, error=CheckpointError)
    except CheckpointError as error:
        raise HubError(error.message, hint=_AGAIN, code="cache") from None
    # Editors and other tools end the line.
    text = data.decode("utf-8", "replace").strip()
    if not COMMIT.fullmatch(text):
        raise HubError(
            f"{ref}: expected a commit of 40 hexadecimal digits, found {shown(text)}",
            hint=_AGAIN,
            code="cache",
        )
    return text


def _unreadable(path: Path, why: str | None) -> HubError:
    return HubError(f"{path}: cannot be read: {why or 'unknown reason'}", hint=_AGAIN, code="cache")


def point(repo: str, revision: str | None, commit: str) -> None:
    """Record which commit a branch or a tag is at."""
    name = "main" if revision is None else revision
    if COMMIT.fullmatch(name) or not (possible(name) and portable(name)):
        return
    ref = root(repo) / "refs" / name
    ref.parent.mkdir(parents=True, exist_ok=True)
    try:
        write_whole(ref, commit)
    except UsageError as error:
        raise HubError(error.message, hint=_AGAIN, code="cache") from None


def store(
    repo: str, commit: str, name: str, file_bytes: int, sha256: str | None, fetch: Callable[[BinaryIO], None]
) -> Path:
    """Fetch one file into a snapshot, and give its path there.

    Args:
        sha256: of the file, where the Hub keeps it in LFS; it is compared with the received bytes.
        fetch: writes the file's bytes.

    Raises:
        HubError: the received file is not the listed one.
    """
    blobs, path = root(repo) / "blobs", root(repo) / "snapshots" / commit / name
    blobs.mkdir(parents=True, exist_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if sha256 is not None and _has(blobs / sha256, file_bytes):
        _link(blobs / sha256, path)
        return path
    partial = blobs / f"{uuid.uuid4().hex}.{uuid.uuid4().hex[:8]}.incomplete"
    try:
        with partial.open("xb") as file:
            written = _Hashing(file, None if sha256 else file_bytes)
            fetch(written)  # type: ignore[arg-type]
        digest = written.hash.hexdigest()
        if sha256 is not None and digest != sha256:
            raise HubError(
                f"{repo}/{name}: expected the SHA-256 {sha256} from the listing, received {digest}",
                hint="try again; if it persists, a proxy or a mirror in between is at fault: check HF_ENDPOINT",
                code="transfer",
            )
        os.replace(partial, blobs / digest)
    finally:
        with suppress(OSError):
            partial.unlink()
    _link(blobs / digest, path)
    return path


class _Hashing:
    """A file that is hashed as it is written: by SHA-256, or as git hashes a file of a known length."""

    def __init__(self, file: BinaryIO, git_bytes: int | None) -> None:
        self._file = file
        self.hash = hashlib.sha256() if git_bytes is None else hashlib.sha1(usedforsecurity=False)
        if git_bytes is not None:
            self.hash.update(b"blob %d\0" % git_bytes)

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()


def _has(path: Path, file_bytes: int) -> bool:
    try:
        return path.is_file() and path.stat().st_size == file_bytes
    except OSError:
        return False


def _link(blob: Path, path: Path) -> None:
    """Make `path` lead to the blob; where the system has no links, the blob becomes the file."""
    link = path.with_name(f".{uuid.uuid4().hex[:8]}.link")
    try:
        os.symlink(os.path.relpath(blob, path.parent), link)
    except (OSError, NotImplementedError):
        os.replace(blob, path)
        return
    os.replace(link, path)
