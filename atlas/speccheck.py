"""Checks a library whole: every file, every name across files, every model bound, named and counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atlas import spec, tensors
from atlas.bibliography import evidence
from atlas.bind import bind
from atlas.errors import AtlasError
from atlas.importers import catalogued
from atlas.library import Library


@dataclass(frozen=True, slots=True)
class SpecCheck:
    """What `atlas specs check` says; a fault is a sentence that names the file or the thing."""

    components: int
    architectures: int
    models: int
    faults: tuple[str, ...]


def check(library: Library) -> SpecCheck:
    """Everything that is wrong, not only the first."""
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
    for name in library.paths("models"):
        if not attempt(library.family, name) or not attempt(library.catalogue, name):
            continue
        family = library.family(name)
        for entry in family.models:
            if entry.architecture is not None:
                models += attempt(_model, family, entry, library)
    return SpecCheck(len(components), len(architectures), models, tuple(dict.fromkeys(faults)))


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
