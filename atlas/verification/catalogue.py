"""Compare the configuration of a catalogued repository with the catalogue: weights may fit a config.json that is itself wrong."""

from __future__ import annotations

from atlas.checkpoint.findings import Finding, warning
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import catalogued
from atlas.resolution.resolve import catalogue_entry
from atlas.spec.library import Library
from atlas.verification.description import Description


def compare_with_catalogue(described: Description, repo: str, library: Library) -> list[Finding]:
    """The settings in which a repository's configuration differs from the catalogue.

    A dimension or flag that differs is an error, since it changes tensors; a number that only changes the computation is a warning.
    """
    entry = catalogue_entry(repo, library)
    if described.file is None or entry is None or entry[1].architecture is None:
        return []
    known = bind(catalogued.describe(*entry, library), library)
    found = described.graph
    tensors = [
        f"{described.key(name)} is {_value(ours)}, in the catalogue {_value(theirs)}"
        for name, ours, theirs in _differing(_shapes(found), _shapes(known))
    ]
    computed = [
        f"{described.key(name)} is {_value(ours)}, in the catalogue {_value(theirs)}"
        for name, ours, theirs in _differing(_numbers(found), _numbers(known))
    ]
    subject = f"{described.file} disagrees with the catalogue's entry {known.model.id}"
    findings = []
    if tensors:
        findings.append(
            Finding(
                code="config",
                file=described.file,
                count=len(tensors),
                message=f"{subject}: {'; '.join(tensors)}",
            )
        )
    if computed:
        message = f"{subject} in settings that no tensor shows: {'; '.join(computed)}"
        findings.append(warning(code="config", file=described.file, count=len(computed), message=message))
    return findings


Setting = bool | int | float | str | None


def _shapes(graph: Graph) -> dict[str, Setting]:
    stated = [*graph.model.dims, *graph.architecture.derived]
    return {**{name: graph.dims[name] for name in stated if name in graph.dims}, **graph.model.flags}


def _numbers(graph: Graph) -> dict[str, Setting]:
    return {
        **graph.model.numbers,
        **{f"rope_scaling.{key}": value for key, value in graph.model.rope.items()},
    }


def _differing(ours: dict[str, Setting], theirs: dict[str, Setting]) -> list[tuple[str, Setting, Setting]]:
    names = dict.fromkeys([*ours, *theirs])
    return [(name, ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)]


def _value(value: Setting) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)
