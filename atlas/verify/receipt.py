"""A receipt: what was verified, when and by which version, as a file that later pages can point to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from atlas.errors import UsageError
from atlas.files import read_text
from atlas.verify.result import Verification, amounts
from atlas.version import __version__


@dataclass(frozen=True, slots=True)
class Receipt:
    """What `--receipt` writes.

    Attributes:
        version: of the atlas.
        written: UTC, ISO 8601.
        checkpoint: what was verified: its model, convention, commit, files with sizes and hashes, and findings.
    """

    version: str
    written: str
    checkpoint: Verification


def receipt(verification: Verification) -> Receipt:
    """The receipt of a verification, as of now."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Receipt(__version__, now, verification)


def read(path: Path) -> Receipt:
    """A receipt from its file.

    Raises:
        UsageError: it cannot be read, or is no receipt.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"--receipt {path} is no file that holds a receipt")
        text = read_text(path, "--receipt")
    except OSError as error:  # of asking what it is
        raise UsageError(f"--receipt {path}: cannot be read: {error.strerror}") from None
    try:
        return TypeAdapter(Receipt).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise UsageError(
            f"--receipt {path} is no receipt of `atlas verify`: {where}: {first['msg']}"
        ) from None


def require_place(path: Path) -> None:
    """Before anything is verified: a receipt can be written there, and takes the place of a receipt or of nothing.

    Raises:
        UsageError: something else is there, such as the weights it is about, or nothing can be.
    """
    try:
        taken = path.exists() or path.is_symlink()
        if path.is_dir():
            raise UsageError(f"--receipt {path} is a folder, expected a file to write")
        if not path.parent.is_dir():
            raise UsageError(f"--receipt {path}: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(f"--receipt {path}: nothing can be written in the folder {path.parent}")
    except OSError as error:
        raise UsageError(f"--receipt {path}: cannot be written: {error.strerror}") from None
    if taken and not _may_go(path):
        raise UsageError(
            f"--receipt {path} is there already and is no receipt, so it is left as it is",
            hint="give another name, or take it away",
        )


def _may_go(path: Path) -> bool:
    """Whether a file is a receipt, or empty, as mktemp makes one."""
    try:
        if path.is_file() and path.stat().st_size == 0:
            return True
        read(path)
    except (OSError, UsageError):
        return False
    return True


def rests_on(found: Receipt) -> str:
    """The sentence a page rests its figures on instead of configured dimensions.

    Raises:
        UsageError: the checkpoint could not be read.
    """
    if found.checkpoint.verdict == "unreadable":
        raise UsageError(
            f"the receipt says that {found.checkpoint.source} could not be read: no figure can rest on it",
            hint="verify the checkpoint again once it can be",
        )
    it = found.checkpoint
    how = "headers and data" if it.deep else "headers"
    verdict = "everything as declared" if it.verdict == "verified" else f"verdict: {it.verdict}"
    if it.ignored:
        verdict = f"verdict: {it.verdict}, without regard to {amounts(it.ignored)}"
    return (
        f"Counted in a checkpoint: the {how} of {it.source} hold {it.parameters.found:,} parameters in "
        f"{it.tensors.found:,} tensors, {verdict} (atlas {found.version}, {found.written})."
    )
