"""Which architecture describes a `model_type`: found by scanning the files' bytes, so that one command parses one of them.

A table whose header is `[configs.NAME]` describes the `model_type` of its own name, or the one that it states. Files with
`base = true` describe none: others are built like them. A file that cannot be parsed spoils its own model types only.

The scan knows no strings that span lines and no inline tables. `unlike` compares what it found with the parsed file, and
`atlas specs check` reports each difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from atlas.errors import SpecError
from atlas.files import read_regular
from atlas.spec.toml_files import MOST_BYTES

_NAME = rb"""(?:"([^"\n]+)"|'([^'\n]+)'|([A-Za-z0-9_-]+))"""
_SECTION = re.compile(
    rb"\n[ \t]*\[(?:[ \t]*configs[ \t]*\.[ \t]*" + _NAME + rb"[ \t]*\]|[^\n=,]*\][ \t]*(?=[#\n]))"
)
"""The header of a table: with a name, if it is a configuration table's. It begins at the end of the line before."""
_STATED = re.compile(rb"""\n[ \t]*(base|model_type|file)[ \t]*=[ \t]*(?:"([^"\n]+)"|'([^'\n]+)'|(true\b))""")


class Claim(NamedTuple):
    """A configuration table that describes a `model_type`.

    Attributes:
        file: the kind of configuration file, `config.json` or `params.json`.
    """

    architecture: str
    table: str
    file: str = "config.json"


def claims(paths: Mapping[str, Path], *, most: int) -> dict[str, list[Claim]]:
    """`model_type` -> the tables that describe it, of all architecture files.

    Args:
        paths: architecture -> its file.
        most: bytes of all files.

    Raises:
        SpecError: the files have more bytes.
    """
    found: dict[str, list[Claim]] = {}
    for architecture, path in paths.items():
        try:
            data = read_regular(path, most=MOST_BYTES, error=SpecError)
        except SpecError:
            continue  # reported when the file is loaded
        most -= len(data)
        if most < 0:
            raise SpecError(f"{path}: the architecture files have too many bytes in total")
        for model_type, claim in _scanned(architecture, b"\n" + data.replace(b"\r\n", b"\n") + b"\n"):
            found.setdefault(model_type, []).append(claim)
    return found


def _scanned(architecture: str, data: bytes) -> Iterator[tuple[str, Claim]]:
    """Each `model_type` of one file, and the table that describes it."""
    sections = list(_SECTION.finditer(data))
    if not sections or b"base" in _values(data, 0, sections[0].start()):
        return
    ends = [section.start() for section in sections[1:]] + [len(data)]
    for section, end in zip(sections, ends, strict=True):
        if name := section[1] or section[2] or section[3]:
            stated = _values(data, section.end(), end)
            model_type, file = stated.get(b"model_type", name), stated.get(b"file", b"config.json")
            yield _text(model_type), Claim(architecture, _text(name), _text(file))


def _values(data: bytes, start: int, end: int) -> dict[bytes, bytes]:
    """The keys between two headers, of those that are asked for, and their values."""
    return {found[1]: found[2] or found[3] or found[4] for found in _STATED.finditer(data, start, end)}


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def unlike(
    architecture: str, claims: Mapping[str, list[Claim]], chain: list[Mapping[str, Any]]
) -> Iterator[str]:
    """Sentences on the configuration tables that the scan of a file's bytes does not see as they are.

    Args:
        chain: the parsed tables of the architecture's file, and of those that it is built like.
    """
    own = chain[0].get("configs", {})
    inherited = {name for tables in chain[1:] for name in tables.get("configs", {})}
    scanned = {
        claim.table: (model_type, claim.file)
        for model_type, listed in claims.items()
        for claim in listed
        if claim.architecture == architecture
    }
    if chain[0].get("base"):
        own = {}
    for name in scanned:
        if name not in own:
            yield f"configs.{name[:80]}: the line [configs.{name[:80]}] is no table of an architecture that describes model types"
    for name, table in own.items():
        expected = table.get("model_type") or name, table.get("file") or "config.json"
        if name in scanned and scanned[name] != expected:
            yield (
                f"configs.{name[:80]}: expected model_type and file on lines of their own below [configs.{name[:80]}], "
                f"found {scanned[name][0][:80]!r} in {scanned[name][1][:80]}, not {expected[0][:80]!r} in {expected[1][:80]}"
            )
        if name not in scanned and name not in inherited:
            yield f"configs.{name[:80]}: expected a line [configs.{name[:80]}], without which no model_type is found"
