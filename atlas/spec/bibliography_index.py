"""Which file of the bibliography states a source or cite: found by scanning the files' bytes, so that a command parses few of them.

A header `[cites.NAME]` or `[sources."NAME"]` states an id. A file may state it in another way that TOML has; then it is found by
parsing the files in turn.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from atlas.errors import SpecError
from atlas.files import read_regular
from atlas.spec.toml_files import MOST_BYTES

_HEADER = re.compile(rb'^\[(?:sources|cites)\.(?:"([^"\\\n]*)"|([\w-]+))\]', re.MULTILINE)


def files_of_ids(paths: Mapping[str, Path]) -> dict[str, list[str]]:
    """Id -> the names of the files with such a header, in the files' order. Files that cannot be read are left out."""
    found: dict[str, list[str]] = {}
    for name, path in paths.items():
        try:
            data = read_regular(path, most=MOST_BYTES, error=SpecError)
        except SpecError:
            continue
        for quoted, bare in _HEADER.findall(data):
            found.setdefault((quoted or bare).decode(errors="replace"), []).append(name)
    return found
