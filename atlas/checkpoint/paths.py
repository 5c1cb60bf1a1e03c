"""Checks of file names and commits that come from a server or a cache, before they become part of a path."""

from __future__ import annotations

import re
import unicodedata

COMMIT = re.compile(r"[0-9a-f]{40}")
SHA256 = re.compile(r"[0-9a-f]{64}")
_LONGEST_PART_BYTES = 255
_LONGEST_NAME_BYTES = 1_024
_DRIVE = re.compile(r"[A-Za-z]:")


def possible(name: object) -> bool:
    """Whether git can store a file of this name: no part is empty, `.` or `..`, and the name is text without a null byte."""
    if not isinstance(name, str) or "\0" in name:
        return False
    try:
        name.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can spell
        return False
    return not {"", ".", ".."}.intersection(name.split("/"))


def portable(name: str) -> bool:
    """Whether a valid name means the same file on every operating system, and prints on one line."""
    return (
        "\\" not in name
        and not _DRIVE.match(name)
        and len(name.encode()) <= _LONGEST_NAME_BYTES
        and all(len(part.encode()) <= _LONGEST_PART_BYTES for part in name.split("/"))
        and not any(unicodedata.category(character) in ("Cc", "Zl", "Zp") for character in name)
    )
