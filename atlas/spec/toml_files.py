"""TOML files as strangers write them: found, and read within bounds, so that whatever works on the tables needs none of its own.

Python's reader gives integers of any length, infinities, and tables as deep as a dotted key is long. All of these are
refused here, with the address of the value.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from atlas.errors import SpecError
from atlas.files import read_regular

MOST_BYTES = 2**18
"""Of a description file; the longest of the atlas's own has 14,008."""

MOST_FILES = 4_096
"""In one folder of description files."""

MOST_DEPTH = 16
"""Of tables and arrays in each other; the atlas's own need 5."""

MOST_CHARACTERS = 10_000
"""Of a text, a key or a line. Python's reader takes time in the square of a dotted key's length, and keys end with their line."""


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file's tables, which hold tables, arrays, texts, 64-bit integers, finite floats and booleans.

    Raises:
        SpecError: the file cannot be read, is too long, is not UTF-8 or is not TOML, with line and column; or a value in
            it is beyond what a description needs.
    """
    data = read_regular(path, most=MOST_BYTES, error=SpecError)
    if (longest := max(map(len, data.split(b"\n")))) > MOST_CHARACTERS:
        raise SpecError(
            f"{path}: not TOML that can be read: a line of {longest:,} bytes, expected at most {MOST_CHARACTERS:,}"
        )
    try:
        tables = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: not TOML: {str(error)[:200]}") from None
    except RecursionError:
        raise SpecError(f"{path}: not TOML that can be read: nested too deeply") from None
    except ValueError:
        raise SpecError(f"{path}: not TOML that can be read: a number or a date beyond any limit") from None
    for address, problem in _problems(tables):
        raise SpecError(f"{path}: {address}: {problem}")
    return tables


def _problems(tables: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Address and fault of what no description needs. A loop, not a recursion: the depth is what is to be found out."""
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
            return f"a text of {len(value):,} characters, expected at most {MOST_CHARACTERS:,}"
        case int() if not -(2**63) <= value < 2**63:
            return "an integer of more than 64 bits"
        case float() if not math.isfinite(value):
            return f"{value} is not a finite number"
        case dict() | list() | str() | int() | float():
            return None
    return "dates and times have no meaning in a description"


def _short(key: str) -> str:
    return key if len(key) <= 40 else f"{key[:37]}..."


def toml_files(folder: Path) -> list[Path]:
    """The description files in a folder, in the order of their names; none where there is no folder.

    Raises:
        SpecError: it cannot be read, is something else, or holds too many.
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
    """Whether something is there to be read, or to be refused: a link to nothing is no file, a FIFO is a wrong one."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True
