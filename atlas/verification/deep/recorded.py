"""The recorded hash of a weight file: from the Hub cache, from a download's metadata, or from a checksum file.

The Hub cache stores a file in LFS under its SHA-256, and the snapshot links to it; a download into a folder writes the
SHA-256 into `.cache/huggingface/download/<file>.metadata`, as the second line. Checksum files (`checklist.chk`, `SHA256SUMS`,
`MD5SUMS`, `*.sha256`, `*.md5`) have lines of a digest and a name, as md5sum and sha256sum print them, with --tag or without.

All of these came with the weights, and anybody may have written them, so none is reported as the Hub's.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from atlas.checkpoint.findings import Finding, warning
from atlas.checkpoint.store import BLOB, Folder
from atlas.errors import CheckpointError
from atlas.files import read_regular

CHECKLIST = "checklist.chk"
DOWNLOADS = ".cache/huggingface/download"

_MOST_CHECKLIST_BYTES = 16 * 2**20
_MOST_METADATA_BYTES = 2**16
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_CHECKSUM_FILES = 1_000
_CHECKSUM_FILE = re.compile(
    r"checklist\.chk|(?:md5|sha256)sums?(?:\.txt)?|.+\.(?:md5|sha256)(?:sums?)?", re.IGNORECASE
)
_LINE = re.compile(r"(?P<digest>[0-9a-fA-F]{32}|[0-9a-fA-F]{64})\s+\*?(?P<name>\S.*)")
_BARE = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{64}")
_BSD_LINE = re.compile(r"(?:MD5|SHA256) \((?P<name>.+)\) = (?P<digest>[0-9a-fA-F]{32}|[0-9a-fA-F]{64})")
_ALGORITHMS = {32: "md5", 64: "sha256"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A hash as somebody has recorded it.

    Attributes:
        where: it stands, after the words "recorded in".
    """

    digest: str
    where: str

    @property
    def algorithm(self) -> str:
        """`md5` or `sha256`, which the length tells."""
        return _ALGORITHMS[len(self.digest)]


def recorded(store: Folder, files: Iterable[str]) -> tuple[dict[str, Recorded], list[Finding]]:
    """File -> its recorded hash, of those that have one; and what is wrong with the records."""
    files = list(files)
    listed: dict[str, Recorded] = {}
    findings: list[Finding] = []
    for name in _checksum_files(store.path):
        of_file, wrong = _checksums(store, name, set(files))
        findings += wrong
        for file, hash in of_file.items():
            if file not in listed or len(hash.digest) > len(listed[file].digest):
                listed[file] = hash
            elif len(hash.digest) == len(listed[file].digest) and hash.digest != listed[file].digest:
                message = f"{store.location}/{name}: the hash of {file} contradicts that in {listed[file].where}: not used"
                findings.append(warning(code="hash", file=name, message=message))
    known: dict[str, Recorded] = {}
    unread: list[tuple[str, CheckpointError]] = []
    for name in files:
        try:
            found = _blob(store.path / name) or _downloaded(store.path, name)
        except CheckpointError as error:
            unread.append((name, error))
            found = None
        if found is None:
            found = listed.get(name)
        if found is not None:
            known[name] = found
    if unread:
        name, first = unread[0]
        more = f"; {len(unread) - 1:,} more of these records cannot be read either" if len(unread) > 1 else ""
        findings.append(warning(code="hash", file=name, count=len(unread), message=first.message + more))
    return known, findings


def _blob(path: Path) -> Recorded | None:
    """What the local Hub cache calls a file, where it is a link into it."""
    try:
        folder, _, name = os.readlink(path).replace("\\", "/").rpartition("/")
    except (OSError, ValueError):  # no link, or no path
        return None
    if folder.rpartition("/")[2] == "blobs" and _SHA256.fullmatch(name):
        return Recorded(name, BLOB)
    return None


def _downloaded(folder: Path, name: str) -> Recorded | None:
    """The hash that a download recorded for a file.

    Raises:
        CheckpointError: something is there that is no such note.
    """
    place = f"{DOWNLOADS}/{name}.metadata"
    path = folder / place
    if not os.path.lexists(path):
        return None
    data = read_regular(path, most=_MOST_METADATA_BYTES, error=CheckpointError)
    second = data.decode("utf-8", "replace").splitlines()[1:2]
    if second and _SHA256.fullmatch(second[0]):
        return Recorded(second[0], f"{place} next to the weights")
    return None  # of a file that is not in LFS there is another hash


def _checksum_files(folder: Path) -> list[str]:
    """The checksum files in a folder, `checklist.chk` first."""
    try:
        names = [name for name in os.listdir(folder) if _CHECKSUM_FILE.fullmatch(name)]
    except OSError:
        return []
    return sorted(names, key=lambda name: (name != CHECKLIST, name))[:_MOST_CHECKSUM_FILES]


def _checksums(store: Folder, checksums: str, files: set[str]) -> tuple[dict[str, Recorded], list[Finding]]:
    """The hashes of these files in one checksum file; of two hashes of one file the SHA-256."""
    where = f"{store.location}/{checksums}"
    try:
        text = read_regular(store.path / checksums, most=_MOST_CHECKLIST_BYTES, error=CheckpointError)
    except CheckpointError as error:
        return {}, [warning(code="hash", file=checksums, message=error.message)]
    found: dict[tuple[str, int], str] = {}
    first = odd = 0
    for i, line in enumerate(map(str.strip, text.decode("utf-8-sig", "replace").splitlines()), 1):
        match = _LINE.fullmatch(line) or _BSD_LINE.fullmatch(line)
        if match:
            name, digest = posixpath.normpath(match["name"]), match["digest"].lower()
        elif _BARE.fullmatch(line) and checksums.lower().endswith((".md5", ".sha256")):
            name, digest = checksums.rpartition(".")[0], line.lower()
        else:
            name = digest = ""
        if name and name not in files:
            continue
        if name and found.setdefault((name, len(digest)), digest) == digest:
            continue
        if line:
            first, odd = first or i, odd + 1
    # In the order of their lengths, so that the longer hash stays.
    in_order = sorted(found.items(), key=lambda item: item[0][1])
    known = {name: Recorded(digest, checksums) for (name, _), digest in in_order}
    stem, _, ending = checksums.rpartition(".")
    if not odd or (ending.lower() in ("md5", "sha256") and stem not in files and not known):
        return known, []  # `NAME.sha256` of another file may have any format
    more = f" and {odd - 1:,} more" if odd > 1 else ""
    message = f"{where}: line {first:,}{more} is not a digest (MD5 or SHA-256) and a name, or contradicts an earlier one: not used"
    return known, [warning(code="hash", file=checksums, message=message)]
