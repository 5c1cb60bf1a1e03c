"""What a file's hash should be: what the Hub has recorded of it, else what a checklist beside it says.

The Hub gives files in LFS their SHA-256 for a name. Its cache keeps a file under that name, to which the snapshot links; a
download into a folder leaves it in `.cache/huggingface/download/<file>.metadata`, as the second line. Meta's downloads have
a `checklist.chk`, lines of a digest and a name as md5sum and sha256sum print them, with --tag or without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint.findings import Finding, warning
from atlas.checkpoint.store import Folder
from atlas.errors import CheckpointError

CHECKLIST = "checklist.chk"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LINE = re.compile(r"(?P<digest>[0-9a-fA-F]{32}|[0-9a-fA-F]{64})\s+\*?(?:\./)?(?P<name>\S.*)")
_BSD_LINE = re.compile(r"(?:MD5|SHA256) \((?P<name>.+)\) = (?P<digest>[0-9a-fA-F]{32}|[0-9a-fA-F]{64})")
_ALGORITHMS = {32: "md5", 64: "sha256"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A hash as somebody has recorded it.

    Attributes:
        who: `the Hub`, or the checklist's name.
    """

    digest: str
    who: str

    @property
    def algorithm(self) -> str:
        """`md5` or `sha256`, which the length tells."""
        return _ALGORITHMS[len(self.digest)]


def recorded(store: Folder, files: Iterable[str]) -> tuple[dict[str, Recorded], list[Finding]]:
    """File -> its recorded hash, of those that have one; and what is wrong with the checklist."""
    files = list(files)
    listed, findings = _checklist(store) if CHECKLIST in files else ({}, [])
    known = {name: _hub(store.path, name) or listed.get(name) for name in files}
    return {name: found for name, found in known.items() if found is not None}, findings


def _hub(folder: Path, name: str) -> Recorded | None:
    digest = (folder / name).resolve().name
    try:
        lines = (folder / ".cache/huggingface/download" / f"{name}.metadata").read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    for word in (digest, *lines[1:2]):
        if _SHA256.fullmatch(word):
            return Recorded(word, "the Hub")
    return None


def _checklist(store: Folder) -> tuple[dict[str, Recorded], list[Finding]]:
    where = f"{store.location}/{CHECKLIST}"
    try:
        lines = store.text(CHECKLIST).decode("utf-8-sig", "replace").splitlines()
    except CheckpointError as error:
        return {}, [warning(code="hash", file=CHECKLIST, message=error.message)]
    found: dict[str, Recorded] = {}
    odd = []
    for i, line in enumerate(map(str.strip, lines), 1):
        match = _LINE.fullmatch(line) or _BSD_LINE.fullmatch(line)
        digest = match["digest"].lower() if match else ""
        if match and found.get(match["name"], Recorded(digest, CHECKLIST)).digest == digest:
            found[match["name"]] = Recorded(digest, CHECKLIST)
        elif line:
            odd.append(i)
    if not odd:
        return found, []
    more = f" and {len(odd) - 1:,} more" if len(odd) > 1 else ""
    message = f"{where}: line {odd[0]:,}{more} is not a digest (MD5 or SHA-256) and a name, or contradicts an earlier one: not used"
    return found, [warning(code="hash", file=CHECKLIST, message=message)]
