"""A receipt: what was verified, when and by which version, as a file that later pages can point to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from atlas.errors import UsageError, clipped, shown
from atlas.files import read_regular, reason
from atlas.text import KeyTwice, NotANumber, beyond_limits, no_constant, no_key_twice
from atlas.verification.result import Verification, amounts
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

    where = f"--receipt {path}"
    document = _document(read_regular(path, what="--receipt"), where)
    try:
        return TypeAdapter(Receipt).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "the document"
        missing = first["type"] == "missing"
        found = "is missing" if missing else f"is {shown(first['input'])}, which no receipt has there"
        raise UsageError(f"{where} is no receipt of `atlas verify`: {clipped(place)} {found}") from None
    except (RecursionError, OverflowError):
        raise UsageError(f"{where} is no receipt of `atlas verify`: nested too deeply") from None


def _document(data: bytes, where: str) -> object:
    """What a receipt's bytes say as JSON.

    Raises:
        UsageError: they are not JSON.
    """
    import json

    try:
        return json.loads(data.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=no_key_twice)
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is not UTF-8"
    except KeyTwice as error:
        found = f"the key {shown(error.key)} stands twice in one object"
    except NotANumber as error:
        found = f"{error} stands where a number is expected"
    except json.JSONDecodeError as error:
        found = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        found = beyond_limits(error)
    raise UsageError(f"{where} is no receipt of `atlas verify`: not JSON: {found}")


def require_place(path: Path) -> None:
    """Before anything is verified: a receipt can be written there, and takes the place of a receipt or of nothing.

    A link counts as what it points to, which is then replaced (`atlas.files.write_whole`).

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
    except (OSError, ValueError) as error:
        raise UsageError(f"--receipt {path}: cannot be written: {reason(error)}") from None
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
