"""Holds cited sources against what is recorded of them: the lines' existence, and their sha256.

`atlas.evidence.sources` finds and reads the sources. No line is shown before its hash has been checked.
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
    numbers = [n for first, last in ranges for n in range(first, last + 1)]
    lines = [line.decode("utf-8", errors="replace") for line in text.cut(ranges)]
    return [Line(n, line) for n, line in zip(numbers, lines, strict=True)]


def compare(text: Text, ranges: Ranges, sha256: str) -> str | None:
    """What is wrong with the cited lines; None where nothing is."""
    end = 0
    for first, last in sorted(map(tuple, ranges)):
        if not 1 <= first <= last <= text.count:
            return f"lines {first}–{last} are cited, and the file has {text.count:,}"
        if first <= end:  # so that the cited lines are never more than the file
            return f"line {first} is cited twice"
        end = last
    found = hashlib.sha256(b"".join(line + b"\n" for line in text.cut(ranges))).hexdigest()
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
        found = json.loads(text.content.decode("utf-8-sig"), object_pairs_hook=no_key_twice)
    except KeyTwice as error:
        return f"it says the key {_shown(error.key)} twice"
    except RecursionError:
        return "it is nested too deeply"
    except json.JSONDecodeError as error:
        return f"it is not JSON, from line {error.lineno} on"
    except UnicodeDecodeError as error:
        return f"it is not JSON: byte {error.start} is not UTF-8"
    except ValueError as error:
        return f"it cannot be read: {beyond_limits(error)}"
    if not isinstance(found, dict):
        return "it is not a JSON object"
    metadata = found.get("metadata", {})
    if not isinstance(metadata, dict):
        return f"its metadata is {_shown(metadata)}, expected an object"
    said = {**found, **metadata}
    wrong = [
        f"{key} is {_shown(said.get(key))}, recorded {_shown(value)}"
        for key, value in expected.items()
        if said.get(key) != value
    ]
    return "; ".join(wrong) or None


def _shown(value: object) -> str:
    """A value of a stranger's JSON in a message: short, and printable whatever it holds."""
    try:
        text = shown(value)
    except RecursionError:
        text = "a value that is nested too deeply to print"
    return text.encode("utf-8", "backslashreplace").decode()
