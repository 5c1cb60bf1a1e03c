"""Which architecture describes a `model_type`: found by scanning the files' bytes, so that one command parses one of them.

A table `[configs.NAME]` describes the `model_type` of its own name, or the one that it states. Files with `base = true`
describe none: others are built like them. A file that cannot be parsed spoils its own model types only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from atlas.errors import SpecError
from atlas.files import read_regular
from atlas.spec.toml_files import MOST_BYTES

_HEADER = re.compile(rb'^\[configs\.(?:"([^"\n]+)"|([A-Za-z0-9_-]+))\][ \t]*(?:#[^\n]*)?$', re.MULTILINE)
_NEXT = re.compile(rb"^\[", re.MULTILINE)
_STATED = re.compile(rb'^model_type[ \t]*=[ \t]*"([^"\n]+)"', re.MULTILINE)
_BASE = re.compile(rb"^base[ \t]*=[ \t]*true\b", re.MULTILINE)


class Claim(NamedTuple):
    """A configuration table that describes a `model_type`."""

    architecture: str
    table: str


def claims(paths: Mapping[str, Path]) -> dict[str, list[Claim]]:
    """`model_type` -> the tables that describe it, of all architecture files.

    Args:
        paths: architecture -> its file.
    """
    found: dict[str, list[Claim]] = {}
    for architecture, path in paths.items():
        try:
            data = read_regular(path, most=MOST_BYTES, error=SpecError).replace(b"\r\n", b"\n")
        except SpecError:
            continue  # reported when the file is loaded
        if _BASE.search(data):
            continue
        for header in _HEADER.finditer(data):
            end = _NEXT.search(data, header.end())
            stated = _STATED.search(data, header.end(), end.start() if end else len(data))
            name = (header[1] or header[2]).decode("utf-8", "replace")
            model_type = stated[1].decode("utf-8", "replace") if stated else name
            found.setdefault(model_type, []).append(Claim(architecture, name))
    return found
