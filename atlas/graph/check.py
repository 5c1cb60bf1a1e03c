"""Checks all description files: each file, references between files, and every model bound to its architecture."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from atlas import spec
from atlas.errors import AtlasError, SpecError
from atlas.evidence.bibliography import evidence
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.resolution import catalogued
from atlas.resolution.resolve import ids
from atlas.spec.library import Library

_ID = re.compile(r"[a-z0-9][a-z0-9.:-]*")


@dataclass(frozen=True, slots=True)
class SpecCheck:
    """The result of `atlas specs check`. Each fault is a sentence that names the file or the id."""

    components: int
    architectures: int
    models: int
    faults: tuple[str, ...]


def check(library: Library) -> SpecCheck:
    """Find every fault, not only the first."""
    faults: list[str] = []

    def attempt(what: Callable[..., object], *arguments: object) -> bool:
        try:
            what(*arguments)
        except AtlasError as error:
            faults.append(error.message)
            return False
        return True

    attempt(lambda: [library.axes, library.sources])
    attempt(lambda: evidence(library.cites, library))
    components = [name for name in library.paths("components") if attempt(library.component, name)]
    architectures = [name for name in library.paths("architectures") if attempt(library.architecture, name)]
    for name in components:
        attempt(_component, library, name)
    models = 0
    owners: dict[str, spec.Entry] = {}
    for name in library.paths("models"):
        if not attempt(library.family, name):
            continue
        family = library.family(name)
        attempt(_family, family, library)
        for entry in family.models:
            faults += _names_taken(entry, name, owners)
            if entry.architecture is not None:
                models += attempt(_model, family, entry, library)
    return SpecCheck(len(components), len(architectures), models, tuple(dict.fromkeys(faults)))


def _family(family: spec.Family, library: Library) -> None:
    """Check a family's own fields and the ids of its models."""
    if family.follows is not None and (
        family.follows == family.id or family.follows not in library.paths("models")
    ):
        raise SpecError(
            f"models/{family.id}.toml: follows = {family.follows!r}: there is no other family of that id"
        )
    for entry in family.models:
        if not _ID.fullmatch(entry.id):
            raise SpecError(
                f"models/{family.id}.toml: id = {entry.id!r}: expected lower-case letters, digits and . : -"
            )


def _names_taken(entry: spec.Entry, file: str, owners: dict[str, spec.Entry]) -> list[str]:
    """Names of an entry that another entry already has. Two entries may share a Hub id if both are published there."""
    found = []
    for word in sorted(ids(entry)):
        owner = owners.setdefault(word, entry)
        shared = word == (entry.hub_id or "").lower() == (owner.hub_id or "").lower()
        if owner is not entry and not shared:
            found.append(f"models/{file}.toml: {word!r} is already a name of {owner.id}")
    return found


def _component(library: Library, name: str) -> None:
    component = library.component(name)
    inner = [cite for words in (*component.weights.values(), *component.steps) for cite in words.cites]
    evidence([*component.cites, *inner], library)


def _model(family: spec.Family, entry: spec.Entry, library: Library) -> None:
    model = catalogued.describe(family, entry, library)
    graph = bind(model, library)
    for convention in graph.architecture.conventions:
        tensors.rows(graph, convention)
    evidence(
        [*model.cites, *(cite for conflict in model.conflicts for cite in conflict.cites)], library, family.id
    )
