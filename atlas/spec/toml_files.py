"""Finds TOML files and reads them within limits, so that the rest of the code needs no limits of its own.

Description files may come from strangers. The parser accepts integers of any length, infinities, and tables nested
as deep as a dotted key is long. These are refused here with the address of the value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli

from atlas.errors import SpecError
from atlas.files import read_regular

MOST_BYTES = 2**18
"""Largest description file. The largest built-in file has about 15,000 bytes."""

MOST_FILES = 4_096
"""Most description files in one folder."""

MOST_DEPTH = 16
"""Deepest nesting of tables and arrays. The built-in files need 5."""

MOST_CHARACTERS = 10_000
"""Longest string, key or line. Python's parser is quadratic in the length of a dotted key."""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file's content: tables, arrays, strings, 64-bit integers, finite floats and booleans.

    Raises:
        SpecError: the file cannot be read, is too long, is not UTF-8 or is not TOML (with line and column), or a value
            exceeds a limit.
    """
    data = read_regular(path, most=MOST_BYTES, error=SpecError)
    if (longest := max(map(len, data.split(b"\n")))) > MOST_CHARACTERS:
        raise SpecError(
            f"{path}: not TOML within the limits: a line of {longest:,} bytes, expected at most {MOST_CHARACTERS:,}"
        )
    try:
        tables = tomli.loads(data.decode("utf-8"))
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not TOML: {str(error)[:200]}") from None
    except RecursionError:
        raise SpecError(f"{path}: not TOML within the limits: nested too deeply") from None
    except ValueError:
        raise SpecError(f"{path}: not TOML within the limits: a number or a date is out of range") from None
    for address, problem in _problems(tables):
        raise SpecError(f"{path}: {address}: {problem}")
    return tables


def _problems(tables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Address and problem of every value beyond the limits. A loop, since recursion would fail on deep nesting."""
    todo: list[tuple[object, tuple[str, ...]]] = [(tables, ())]
    while todo:
        value, at = todo.pop()
        problem = _problem(value, len(at))
        if problem:
            yield ".".join(_short(key) for key in at[:5]) + ("" if len(at) <= 5 else "..."), problem
        elif isinstance(value, dict):
            todo += [(item, (*at, key)) for key, item in value.items()]
        elif isinstance(value, list):
            todo += [(item, (*at, str(i))) for i, item in enumerate(value)]


def _problem(value: object, depth: int) -> str | None:
    match value:
        case dict() | list() if depth > MOST_DEPTH:
            return f"tables and arrays are nested more than {MOST_DEPTH} deep"
        case dict() if any(len(key) > MOST_CHARACTERS for key in value):
            return f"a key of more than {MOST_CHARACTERS:,} characters"
        case str() if len(value) > MOST_CHARACTERS:
            return f"a string of {len(value):,} characters, expected at most {MOST_CHARACTERS:,}"
        case int() if not -(2**63) <= value < 2**63:
            return "an integer of more than 64 bits"
        case float() if not math.isfinite(value):
            return f"{value} is not a finite number"
        case dict() | list() | str() | int() | float():
            return None
    return "dates and times are not allowed in a description"


def _short(key: str) -> str:
    return key if len(key) <= 40 else f"{key[:37]}..."


def toml_files(folder: Path) -> list[Path]:
    """The description files in a folder, sorted by name; empty if the folder does not exist.

    Raises:
        SpecError: it cannot be read, is not a folder, or contains too many files.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".toml"):
                    found.append(folder / entry.name)
                    if len(found) > MOST_FILES:
                        raise SpecError(f"{folder}: more than {MOST_FILES:,} description files")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SpecError(f"{folder}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise SpecError(f"{str(folder)!r} is not a path") from None
    return sorted(found)


def is_there(path: Path) -> bool:
    """Whether a path exists, even as something that reading will refuse. A dangling link does not exist."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def may_contain(path: Path, text: str) -> bool:
    """Whether a file's strings may contain a text, in any case, found without parsing it.

    A file with a backslash may (the string may be written with escapes), and so may one that cannot be read: its loading
    reports why.
    """
    try:
        data = read_regular(path, most=MOST_BYTES, error=SpecError)
    except SpecError:
        return True
    return b"\\" in data or not text.isascii() or text.lower().encode() in data.lower()
