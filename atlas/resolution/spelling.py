"""Names as people write them: `llama-3.1-8b`, `llama3.1:8b`, `Llama-2-7b-hf` -> catalogue entries, and the nearest ids."""

from __future__ import annotations

import difflib
import re

from atlas import spec
from atlas.spec.library import Library

_NEAR = 0.75
"""Least similarity of a name that is suggested: one or two letters of a short id differ."""


def ids(entry: spec.Entry) -> set[str]:
    """Every name of an entry, in lower case."""
    names = [
        entry.id,
        *filter(None, [entry.catalogue]),
        *([entry.hub_id] if entry.hub_id else []),
        *entry.aliases,
    ]
    return {name.lower() for name in names}


def plain(name: str) -> str:
    """A name without what spellings differ in: case, the owner, separators, `Meta-` in front and `-hf` at the end.

    Dots stay, since `3.1-8b` and `3-1.8b` are different.
    """
    last = name.strip().lower().rpartition("/")[2]
    words = re.split(r"[-_:\s]+", re.sub(r"(?<=[a-z])(?=\d+(\.\d+)?($|[-_:\s]))", "-", last))
    words = [word for word in words if word]
    if words[:1] == ["meta"]:
        words = words[1:]
    if words[-1:] == ["hf"]:
        words = words[:-1]
    return "-".join(words)


def spelled(name: str, library: Library) -> list[tuple[spec.Family, spec.Entry]]:
    """The entries that a name may spell; the caller refuses more than one.

    A name with an owner other than those in the catalogue is another repository and spells nothing.
    """
    wanted, owner = plain(name), name.strip().lower().rpartition("/")[0]
    if not wanted:
        return []
    found = []
    for family in library.families():
        for entry in family.models:
            names = ids(entry)
            owners = {word.rpartition("/")[0] for word in names}
            if owner in owners and wanted in {plain(word) for word in names}:
                found.append((family, entry))
    return found


def nearest(name: str, library: Library) -> list[str]:
    """The catalogue ids that continue this name, then those with the most similar names: at most three, or none."""
    names: dict[str, str] = {}
    for family in library.families():
        for entry in family.models:
            for word in sorted(ids(entry)):
                names.setdefault(plain(word), entry.id)
                names.setdefault(word, entry.id)
    wanted = name.strip()[:200].lower()
    matches = [
        *(word for word in names if plain(wanted) and word.startswith(f"{plain(wanted)}-")),
        *difflib.get_close_matches(wanted, names, n=6, cutoff=_NEAR),
        *difflib.get_close_matches(plain(wanted), names, n=6, cutoff=_NEAR),
    ]
    return list(dict.fromkeys(names[match] for match in matches))[:3]
