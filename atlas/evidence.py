"""Holds cited sources against what is recorded of them: the lines' existence, and their sha256.

`atlas.sources` finds and reads the sources. No line is shown before its hash has been checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas import spec
from atlas.bibliography import Lines, Place, catalogue_cite, place
from atlas.errors import SourceError
from atlas.library import Library
from atlas.sources import Reader, Text

Ranges = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Check:
    """One place of one cite, checked.

    Attributes:
        status: `ok`, `differs`, or `unchecked` where the source is not at hand.
        detail: what was found, or why it could not be read.
    """

    cite: str
    source: str
    lines: Lines
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What `atlas evidence check` says."""

    checks: tuple[Check, ...]
    ok: int
    differs: int
    unchecked: int


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str


def excerpt(reader: Reader, name: str, ranges: Ranges, sha256: str) -> list[Line] | None:
    """The cited lines; None where the source is not at hand.

    Raises:
        SourceError: the source is at hand, and the lines are not there or their hash is another.
    """
    text = reader.read(name)
    if isinstance(text, str):
        return None
    problem = compare(text, ranges, sha256)
    if problem:
        raise SourceError(f"{name} ({text.origin}): {problem}")
    lines = text.lines
    return [Line(n, lines[n - 1]) for first, last in ranges for n in range(first, last + 1)]


def compare(text: Text, ranges: Ranges, sha256: str) -> str | None:
    """What is wrong with the cited lines; None where nothing is."""
    lines = text.lines
    for first, last in ranges:
        if not 1 <= first <= last <= len(lines):
            return f"lines {first}–{last} are cited, and the file has {len(lines):,}"
    cited = "".join(f"{lines[n - 1]}\n" for first, last in ranges for n in range(first, last + 1))
    found = hashlib.sha256(cited.encode()).hexdigest()
    return None if found == sha256 else f"the cited lines have sha256 {found[:12]}…, expected {sha256[:12]}…"


def check(reader: Reader) -> Checked:
    """Every place of every cite, those of the catalogue's entries included."""
    checks = tuple(_check(reader, name, cite, where) for name, cite, where in _places(reader.library))
    count = [sum(1 for item in checks if item.status == status) for status in ("ok", "differs", "unchecked")]
    return Checked(checks, *count)


def _places(library: Library) -> Iterator[tuple[str, spec.Cite, Place]]:
    for name, cite in library.cites.items():
        for where in cite.at:
            yield name, cite, place(where)
    for family in library.paths("catalogue"):
        catalogue = library.catalogue(family)
        for name in [*catalogue.names, *(entry.descriptor for entry in catalogue.entries)]:
            cite = catalogue_cite(catalogue, name)
            yield f"catalogue/{name}", cite, place(cite.at[0])


def _check(reader: Reader, name: str, cite: spec.Cite, where: Place) -> Check:
    text = reader.read(where.source)
    if isinstance(text, str):
        return Check(name, where.source, where.lines, "unchecked", text)
    problem = compare(text, where.lines, where.sha256) if where.lines else _values(text, cite.values)
    return Check(name, where.source, where.lines, "differs" if problem else "ok", problem or text.origin)


def _values(text: Text, expected: Mapping[str, Any]) -> str | None:
    """What differs between a published JSON file and the values recorded of it."""
    try:
        found = json.loads(text.content)
    except ValueError:
        return "it is not JSON"
    if not isinstance(found, dict):
        return "it is no JSON object"
    said = {**found, **found.get("metadata", {})}
    wrong = [
        f"{key} is {said.get(key)!r}, recorded {value!r}"
        for key, value in expected.items()
        if said.get(key) != value
    ]
    return "; ".join(wrong) or None
