"""Layers that read what an earlier layer cached, and their own entry of what is made for all (`of_layer`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from atlas.analyse.caches import layer_caches
from atlas.errors import ConfigError, SpecError
from atlas.spec.library import Library
from tests.test_bind_options import LAYERS, bound, changed

Overlay = Callable[[Mapping[str, str]], Library]

SHARING = """
[variants.sharing]
of    = "attention"
nodes = { attention = "sharing" }
reads = { attention = ["attention_norm", "attention.keys", "attention.values"] }
with  = { attention = { keys = "given", values = "given" } }
"""

ENTRY = """
id = "entry"
title = "Entry"
summary = "The layer's own entry."
in = { x = "batch positions dim", all = "batch positions OVER dim" }

[[steps]]
id = "own"
op = "of_layer"
of = ["all"]
over = "OVER"
shape = "batch positions dim"
"""


MANY = """
id = "many"
title = "Many"
summary = "A vector for each entry."
in = { x = "batch positions dim" }

[weights.w]
shape = "OVER dim"

[[steps]]
id = "all"
op = "mul"
of = ["x", "w"]
shape = "batch positions OVER dim"
"""


def layers(first: str) -> tuple[str, str]:
    """The change in which the first layers have keys of their own, and the others use theirs."""
    blocks = f'{{ block = "attention", first = "{first}" }}, {{ block = "sharing" }}'
    return LAYERS, f'layers = [[{blocks}], [{{ block = "feed_forward" }}]]'


@pytest.mark.parametrize("first", [1, 2])
def test_layers_that_share_have_no_keys_of_their_own(first: int, overlay: Overlay) -> None:
    graph = bound(changed(overlay, layers(str(first)), end=SHARING))
    assert (graph.times("attention"), graph.times("sharing")) == (first, 3 - first)
    assert [weight for weight in graph.weights if weight.startswith("sharing.")] == [
        "sharing.wq",
        "sharing.wo",
    ]
    assert [(cache.kind, cache.layers, len(cache.steps)) for cache in layer_caches(graph)] == [
        ("attention", first, 2)
    ]


def test_the_first_layer_has_no_earlier_one(overlay: Overlay) -> None:
    with pytest.raises(
        ConfigError, match="layer 0, counted from 0, reads the keys that an earlier layer's attention made"
    ):
        bound(changed(overlay, layers("0"), end=SHARING))


def test_an_entry_of_a_layer_is_along_the_layers(overlay: Overlay) -> None:
    """Along another axis, a layer's number could be beyond the last entry."""
    library = changed(
        overlay,
        (
            '{ id = "out", is = "add", of = ["x", "feed_forward"] }',
            '{ id = "own", is = "entry", of = ["x", "many"] }, { id = "out", is = "add", of = ["own", "feed_forward"] }',
        ),
        (
            '  { stack = "layers", of = "tok_embeddings" },',
            '  { node = { id = "many", is = "many", of = "tok_embeddings" } },\n  { stack = "layers", of = "tok_embeddings" },',
        ),
        entry=ENTRY.replace("OVER", "n_heads"),
        many=MANY.replace("OVER", "n_heads"),
    )
    with pytest.raises(SpecError, match=r"own\.own selects along n_heads; the layers are along n_layers"):
        bound(library)


def test_the_top_level_has_no_layer(overlay: Overlay) -> None:
    library = changed(
        overlay,
        (
            '  { stack = "layers", of = "tok_embeddings" },',
            '  { node = { id = "many", is = "many", of = "tok_embeddings" } },\n'
            '  { node = { id = "own", is = "entry", of = ["tok_embeddings", "many"] } },\n'
            '  { stack = "layers", of = "own" },',
        ),
        entry=ENTRY.replace("OVER", "n_layers"),
        many=MANY.replace("OVER", "n_layers"),
    )
    with pytest.raises(SpecError, match=r"own\.own: is in no layer"):
        bound(library)
