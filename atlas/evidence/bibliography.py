"""Resolves cites: a claim, every place that supports it, and how directly it does so for a given family.

    direct          the model's own code or catalogue states it
    implementation  a library's implementation of the model does it, which is not the publisher's own statement
    contextual      a predecessor, a sibling or a published copy states it
    operation       a dependency shows how an operation stores or applies its weights

The relation follows from the families that a source describes, so a claim may be direct for one family and contextual for
another. This file reads only the description; `atlas.evidence.sources` reads the sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from atlas import spec
from atlas.errors import SpecError
from atlas.spec.library import Library

RELATIONS = ("direct", "implementation", "contextual", "operation")

Lines = tuple[tuple[int, int], ...]

_NUMBER = r"[0-9]{1,9}"
_SPAN = rf"{_NUMBER}(?:-{_NUMBER})?"
_PLACE = re.compile(rf"(\S+)(?: ({_SPAN}(?:,{_SPAN})*) sha256:([0-9a-f]{{64}}))?")


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source that supports a claim.

    Attributes:
        lines: ranges of the file, both ends included; empty for a published configuration, which is cited by values.
        sha256: of those lines in order, each terminated by one newline.
    """

    source: str
    lines: Lines = ()
    sha256: str = ""


def place(text: str) -> Place:
    """Parse `llama3 266-269,298-302 sha256:…` into source, lines and hash; lines and hash are optional.

    Raises:
        SpecError: the form is wrong, or a range ends before it starts.
    """
    found = _PLACE.fullmatch(text)
    if found is None:
        raise SpecError(
            f"place {text[:120]!r}: expected a source, its lines and their hash, such as 'llama3 35-46 sha256:…'"
        )
    if found[2] is None:
        return Place(found[1])
    ends = [span.partition("-") for span in found[2].split(",")]
    lines = tuple((int(first), int(last or first)) for first, _, last in ends)
    if any(not 1 <= first <= last for first, last in lines):
        raise SpecError(f"place {text[:120]!r}: {found[2][:80]} are not valid line ranges")
    return Place(found[1], lines, found[3])


@dataclass(frozen=True, slots=True)
class Evidence:
    """One place that supports one claim.

    Attributes:
        id: of the cite; several places of one cite share it.
        lines: ranges of the file, both ends included; empty for a published configuration, which is cited by values.
        sha256: of those lines in order, each terminated by one newline.
    """

    id: str
    relation: str
    claim: str
    source: str
    title: str
    repo: str
    revision: str
    path: str
    lines: Lines
    sha256: str

    @property
    def where(self) -> str:
        """File and lines for a page: `model.py 266–269, 298–302`."""
        spans = ", ".join(f"{a}–{b}" if a != b else str(a) for a, b in self.lines)
        return f"{self.path.rpartition('/')[2]} {spans}".rstrip()


def evidence(cites: Iterable[str], library: Library, family: str = "") -> list[Evidence]:
    """Every place of these cites, the most direct first, then in the order of the cites.

    Raises:
        SpecError: a cite or its source is not in the bibliography.
    """
    found: list[Evidence] = []
    for name in dict.fromkeys(cites):
        cite = _cite(name, library, family)
        for where in map(place, cite.at):
            source = library.source(where.source, f"cite {name}")
            found.append(
                Evidence(
                    id=name,
                    relation=relation(source, family),
                    claim=cite.claim,
                    source=where.source,
                    title=source.title,
                    repo=source.repo,
                    revision=source.revision or (f"v{source.version}" if source.version else ""),
                    path=source.path,
                    lines=where.lines,
                    sha256=where.sha256,
                )
            )
    return sorted(found, key=lambda item: RELATIONS.index(item.relation))


def relation(source: spec.Source, family: str) -> str:
    """How directly a source supports a claim about a family."""
    if source.role == "dependency":
        return "operation"
    if source.role == "implementation":
        return "implementation"
    return "direct" if family in source.describes else "contextual"


def _cite(name: str, library: Library, family: str) -> spec.Cite:
    kind, _, row = name.partition("/")
    if kind == "catalogue" and row:
        return catalogue_cite(library.catalogue(family), row)
    return library.cite(name)


def catalogue_cite(catalogue: spec.Catalogue, name: str) -> spec.Cite:
    """The cite of an entry of Meta's catalogue, or of a name its entries take values from."""
    for entry in catalogue.entries:
        if entry.descriptor == name:
            claim = f"Meta's catalogue entry {name} states its dimensions and settings."
            return _one_place(claim, catalogue.source, entry.lines, entry.sha256)
    if name in catalogue.names:
        named = catalogue.names[name]
        return _one_place(
            f"Entries of the catalogue take values from {name}.", catalogue.source, named.lines, named.sha256
        )
    raise SpecError(f"the catalogue has neither an entry nor a name {name!r}")


def _one_place(claim: str, source: str, lines: list[list[int]], sha256: str) -> spec.Cite:
    spans = ",".join(f"{first}-{last}" for first, last in lines)
    return spec.Cite(claim=claim, at=[f"{source} {spans} sha256:{sha256}"])
