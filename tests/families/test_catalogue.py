"""The models of the catalogue that are not Meta's: each is the configuration that `expected.toml` has the figures of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atlas import spec
from atlas.analyse import parameters
from atlas.graph.graph import Graph
from atlas.pages.catalogue import list_models
from atlas.spec.library import Library
from tests.families import expected


def entries(library: Library) -> dict[str, spec.Entry]:
    of_meta = set(library.paths("catalogue"))
    return {
        entry.id: entry
        for family in library.families()
        if family.id not in of_meta
        for entry in family.models
    }


def test_the_models_are_those_with_figures(library: Library) -> None:
    assert set(entries(library)) == set(expected.EXPECTED)


@pytest.mark.parametrize("name", expected.EXPECTED)
def test_a_model_has_its_figures(name: str, library: Library, graph_of: Callable[[str], Graph]) -> None:
    graph, row = graph_of(name), expected.EXPECTED[name]
    assert parameters.total(graph) == row.parameters
    assert parameters.active(graph) == (row.active or row.parameters)
    assert entries(library)[name].source, "where the configuration was read"


def test_a_family_follows_one_there_is(library: Library) -> None:
    families = set(library.paths("models"))
    for family in library.families():
        assert family.follows is None or family.follows in families, family.id


def test_the_list_stays_readable(library: Library) -> None:
    found = list_models(library)
    assert len(found.models) == 90
    assert {model.family for model in list_models(library, ("qwen",)).models} >= {"qwen2", "qwen3"}
