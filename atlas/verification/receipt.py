"""A receipt: a file that records what was verified, when and by which version. `atlas explain` can cite it."""

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
        version: the version of the atlas.
        written: the time, UTC, ISO 8601.
        checkpoint: the verification: model, convention, commit, files with sizes and hashes, and findings.
    """

    version: str
    written: str
    checkpoint: Verification


def receipt(verification: Verification) -> Receipt:
    """The receipt of a verification, with the current time."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Receipt(__version__, now, verification)


def read(path: Path) -> Receipt:
    """A receipt from its file.

    Raises:
        UsageError: the file cannot be read, or is not a receipt.
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
        found = "is missing" if missing else f"is {shown(first['input'])}, which is not valid there"
        raise UsageError(f"{where} is not a receipt of `atlas verify`: {clipped(place)} {found}") from None
    except (RecursionError, OverflowError):
        raise UsageError(f"{where} is not a receipt of `atlas verify`: nested too deeply") from None


def _document(data: bytes, where: str) -> object:
    """The JSON value in a receipt's bytes.

    Raises:
        UsageError: they are not JSON.
    """
    import json

    try:
        return json.loads(data.decode("utf-8"), parse_constant=no_constant, object_pairs_hook=no_key_twice)
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is not UTF-8"
    except KeyTwice as error:
        found = f"one object has the key {shown(error.key)} twice"
    except NotANumber as error:
        found = f"{error} is not a number in JSON"
    except json.JSONDecodeError as error:
        found = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        found = beyond_limits(error)
    raise UsageError(f"{where} is not a receipt of `atlas verify`: not JSON: {found}")


def require_place(path: Path) -> None:
    """Check, before anything is verified, that a receipt can be written there and replaces nothing but a receipt.

    A link is followed: what it points to is replaced (`atlas.files.write_whole`).

    Raises:
        UsageError: another file is there, such as the weights themselves, or the folder cannot be written to.
    """
    try:
        taken = path.exists() or path.is_symlink()
        if path.is_dir():
            raise UsageError(f"--receipt {path} is a folder, expected a file to write")
        if not path.parent.is_dir():
            raise UsageError(f"--receipt {path}: there is no folder {path.parent}")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise UsageError(f"--receipt {path}: the folder {path.parent} cannot be written to")
    except (OSError, ValueError) as error:
        raise UsageError(f"--receipt {path}: cannot be written: {reason(error)}") from None
    if taken and not _may_be_replaced(path):
        raise UsageError(
            f"--receipt {path} exists and is not a receipt, so it is not replaced",
            hint="give another name, or delete the file",
        )


def _may_be_replaced(path: Path) -> bool:
    """Whether a file is a receipt, or empty like one made by mktemp."""
    try:
        if path.is_file() and path.stat().st_size == 0:
            return True
        read(path)
    except (OSError, UsageError):
        return False
    return True


def rests_on(found: Receipt) -> str:
    """The sentence for `rests_on` of a page: its figures were counted in a checkpoint.

    Raises:
        UsageError: the checkpoint could not be read, or its model is not described.
    """
    it = found.checkpoint
    if it.verdict in ("unreadable", "not described"):
        reason = "could not be read" if it.verdict == "unreadable" else "is of a model that is not described"
        raise UsageError(
            f"the receipt says that {it.source} {reason}, so it supports no figure",
            hint="verify the checkpoint again when it can be read" if it.verdict == "unreadable" else "",
        )
    how = "headers and data" if it.deep else "headers"
    verdict = "all as declared" if it.verdict == "verified" else f"verdict: {it.verdict}"
    if it.ignored:
        verdict = f"verdict: {it.verdict}, ignoring {amounts(it.ignored)}"
    return (
        f"Counted in a checkpoint: the {how} of {it.source} have {it.parameters.found:,} parameters in "
        f"{it.tensors.found:,} tensors, {verdict} (atlas {found.version}, {found.written})."
    )
