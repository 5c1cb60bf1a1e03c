"""Compares cited sources with their records: the cited lines must exist and have the recorded sha256.

`atlas.evidence.sources` finds and reads the sources. A line is shown only after its hash has been checked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from atlas import spec
from atlas.errors import SourceError, shown
from atlas.evidence.bibliography import Lines, Place, catalogue_cite, place
from atlas.evidence.sources import Reader, Text
from atlas.spec.library import Library
from atlas.text import KeyTwice, beyond_limits, no_key_twice

Ranges = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Check:
    """The result for one place of one cite.

    Attributes:
        status: `ok`, `differs`, or `unchecked` if the source is not available.
        detail: where the source was read, the difference, or why it could not be read.
    """

    cite: str
    source: str
    lines: Lines
    status: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of `atlas evidence check`."""

    checks: tuple[Check, ...]
    ok: int
    differs: int
    unchecked: int


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str


def excerpt(reader: Reader, name: str, ranges: Ranges, sha256: str) -> list[Line] | None:
    """The cited lines; None if the source is not available.

    Raises:
        SourceError: the source is available, but the lines do not exist or their hash differs.
    """
    text = reader.read(name)
    if isinstance(text, str):
        return None
    problem = compare(text, ranges, sha256)
    if problem:
        raise SourceError(f"{name} ({text.origin}): {problem}")
    numbers = [n for first, last in ranges for n in range(first, last + 1)]
    lines = [line.decode("utf-8", errors="replace") for line in text.lines(ranges)]
    return [Line(n, line) for n, line in zip(numbers, lines, strict=True)]


def compare(text: Text, ranges: Ranges, sha256: str) -> str | None:
    """The problem with the cited lines; None if there is none."""
    end = 0
    for first, last in sorted(map(tuple, ranges)):
        if not 1 <= first <= last <= text.line_count:
            return f"lines {first}–{last} are cited, and the file has {text.line_count:,}"
        if first <= end:  # bounds the number of cited lines by the file
            return f"line {first} is cited twice"
        end = last
    found = hashlib.sha256(b"".join(line + b"\n" for line in text.lines(ranges))).hexdigest()
    return None if found == sha256 else f"the cited lines have sha256 {found[:12]}…, expected {sha256[:12]}…"


def check(reader: Reader) -> Checked:
    """Check every place of every cite, including those of catalogue entries."""
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
    """The differences between a published JSON file and its recorded values."""
    try:
        found = json.loads(text.content.decode("utf-8-sig"), object_pairs_hook=no_key_twice)
    except KeyTwice as error:
        return f"duplicate key {_shown(error.key)}"
    except RecursionError:
        return "it is nested too deeply"
    except json.JSONDecodeError as error:
        return f"it is not JSON: line {error.lineno}"
    except UnicodeDecodeError as error:
        return f"it is not JSON: byte {error.start} is not UTF-8"
    except ValueError as error:
        return f"it cannot be read: {beyond_limits(error)}"
    if not isinstance(found, dict):
        return "it is not a JSON object"
    metadata = found.get("metadata", {})
    if not isinstance(metadata, dict):
        return f"its metadata is {_shown(metadata)}, expected an object"
    stated = {**found, **metadata}
    wrong = [
        f"{key} is {_shown(stated.get(key))}, recorded {_shown(value)}"
        for key, value in expected.items()
        if stated.get(key) != value
    ]
    return "; ".join(wrong) or None


def _shown(value: object) -> str:
    """A JSON value for a message: shortened and printable, whatever the file contains."""
    try:
        text = shown(value)
    except RecursionError:
        text = "a value that is nested too deeply to print"
    return text.encode("utf-8", "backslashreplace").decode()
