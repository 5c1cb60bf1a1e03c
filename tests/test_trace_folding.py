"""Traces made shorter for reading: layers alike as one, one layer, one component; and what each step reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atlas.analyse.folding import folded, ranges, select
from atlas.analyse.trace import Pass, trace
from atlas.errors import UsageError
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.spec.library import Library, builtin_folder

EIGHT_B = "llama3.1-8b"


# ---------------------------------------------------------------- the steps that a step reads


def test_a_step_names_the_steps_whose_results_it_reads(graph_of: Callable[[str], Graph]) -> None:
    """By hand for the first two layers: the residual stream runs from the embedding through both sums."""
    read = {step.id: step.input_steps for step in trace(graph_of(EIGHT_B)).steps}
    assert read["tok_embeddings.embedded"] == ()
    assert read["layers.0.attention_norm.normed"] == ("tok_embeddings.embedded",)
    assert read["layers.0.attention.q_rotated"] == ("layers.0.attention.q",)
    assert read["layers.0.attention.keys"] == ("layers.0.attention.k_rotated",)
    assert read["layers.0.attention.scores"] == ("layers.0.attention.q_rotated", "layers.0.attention.keys")
    assert read["layers.0.attention.mixed"] == (
        "layers.0.attention.weights_rounded",
        "layers.0.attention.values",
    )
    assert read["layers.0.h.sum"] == ("tok_embeddings.embedded", "layers.0.attention.projected")
    assert read["layers.0.ffn_norm.normed"] == ("layers.0.h.sum",)
    assert read["layers.0.out.sum"] == ("layers.0.h.sum", "layers.0.feed_forward.down")
    assert read["layers.1.attention_norm.normed"] == ("layers.0.out.sum",)
    assert read["layers.1.h.sum"] == ("layers.0.out.sum", "layers.1.attention.projected")
    assert read["norm.normed"] == ("layers.31.out.sum",)
    assert read["output.projected"] == ("norm.scaled",)


def test_an_optional_step_is_read_in_place_of_the_one_before(
    bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    read = {step.id: step.input_steps for step in trace(bound(small | {"attention_bias": True})).steps}
    assert read["layers.1.attention.q_biased"] == ("layers.1.attention.q",)
    assert read["layers.1.attention.q_rotated"] == ("layers.1.attention.q_biased",)
    assert read["layers.1.h.sum"] == ("layers.0.out.sum", "layers.1.attention.projected_biased")


@pytest.mark.parametrize("name", [EIGHT_B, "llama3.2-3b", "llama2-7b"])
def test_steps_read_only_earlier_steps_and_every_step_but_the_last_is_read(
    name: str, graph_of: Callable[[str], Graph]
) -> None:
    earlier: set[str] = set()
    read: set[str] = set()
    steps = trace(graph_of(name)).steps
    for step in steps:
        assert earlier.issuperset(step.input_steps), step.id
        earlier.add(step.id)
        read.update(step.input_steps)
    assert earlier - read == {"output.logits"}


# ---------------------------------------------------------------- layers alike as one


def test_layers_alike_are_one(graph_of: Callable[[str], Graph]) -> None:
    """1 step before the layers, 27 in each of 32 layers, 5 after them."""
    found = trace(graph_of(EIGHT_B))
    rows = folded(found)
    assert (len(found.steps), len(rows)) == (1 + 32 * 27 + 5, 1 + 27 + 5)
    assert [row.count for row in rows] == [1] + [32] * 27 + [1] * 5
    assert rows[0].id == "tok_embeddings.embedded"
    assert rows[1].id == "layers.0–31.attention_norm.normed"
    assert rows[-1].id == "output.logits"
    assert sum(row.count * row.step.parameters for row in rows) == 8_030_261_248


def test_one_layer_is_not_a_range(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    assert folded(trace(bound(small | {"num_hidden_layers": 1})))[1].id == "layers.0.attention_norm.normed"


def test_layers_that_differ_stay_apart(overlay: Callable[..., Library], small: dict[str, Any]) -> None:
    """Every third layer has a feed-forward of another block: five layers are 0, 1, 3, 4 and 2."""
    text = (builtin_folder() / "architectures" / "decoder.toml").read_text(encoding="utf-8")
    text = text.replace(
        '[{ block = "feed_forward" }]]',
        '[{ block = "feed_forward_swapped", every = "3" }, { block = "feed_forward" }]]',
    )
    block = text[text.index("feed_forward = [") : text.index("[variants", text.index("feed_forward = ["))]
    swapped = block.replace("feed_forward = [", "feed_forward_swapped = [").replace(
        'of = ["x", "feed_forward"]', 'of = ["feed_forward", "x"]'
    )
    library = overlay({"architectures/decoder.toml": text.replace(block, block + swapped)})
    settings = small | {"num_hidden_layers": 5}
    found = trace(bind(config.describe(settings, library, id="test"), library))
    prefixes = list(dict.fromkeys(row.prefix for row in folded(found)))
    assert prefixes == ["", "layers.0–1,3–4", "layers.2"]
    assert sum(row.count for row in folded(found)) == len(found.steps)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([0], "0"),
        ([0, 1], "0–1"),
        (list(range(126)), "0–125"),
        ([0, 1, 2, 4, 5, 6], "0–2,4–6"),
        ([3, 7, 11, 15], "3,7,…,15"),
        ([0, 2], "0,2"),
        ([0, 1, 3, 4, 6, 7, 9, 10, 12, 13], "0–1,3–4,6–7,…,12–13"),
    ],
)
def test_numbers_of_layers_briefly(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text


# ---------------------------------------------------------------- one layer, one component


def test_one_layer(graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(EIGHT_B)
    whole = trace(graph, Pass(batch=1, positions=128))
    found = select(whole, graph, layer=31)
    assert len(found.steps) == 27
    assert {step.layer for step in found.steps} == {31}
    assert sum(step.flops or 0 for step in found.steps) == 56_103_010_304
    assert found.total_flops == whole.total_flops


@pytest.mark.parametrize(
    ("component", "steps"),
    [
        ("attention.wq", {"q"}),
        ("Q_PROJ", {"q"}),
        ("self_attn.q_proj", {"q"}),
        ("mlp", {"gate", "opened", "up", "hidden", "down"}),
        ("feed_forward", {"gate", "opened", "up", "hidden", "down"}),
        ("gate_proj", {"gate"}),
        ("w1", {"gate"}),
    ],
)
def test_one_component_by_its_id_or_by_any_name(
    component: str, steps: set[str], graph_of: Callable[[str], Graph]
) -> None:
    graph = graph_of(EIGHT_B)
    found = select(trace(graph), graph, component=component)
    assert {step.id.rpartition(".")[2] for step in found.steps} == steps
    assert len(found.steps) == 32 * len(steps)


@pytest.mark.parametrize(
    ("component", "node"), [("lm_head", "output"), ("norm", "norm"), ("embed_tokens", "tok_embeddings")]
)
def test_a_component_outside_the_layers(component: str, node: str, graph_of: Callable[[str], Graph]) -> None:
    graph = graph_of(EIGHT_B)
    found = select(trace(graph), graph, component=component)
    assert {step.id.partition(".")[0] for step in found.steps} == {node}


@pytest.mark.parametrize(
    ("layer", "component", "words", "hint"),
    [
        (32, None, "--layer is 32, expected 0 to 31", ""),
        (-1, None, "--layer is -1, expected 0 to 31", ""),
        (None, "attention.wx", "no component called 'attention.wx'", "attention.wq"),
        (None, "", "no component called ''", "components are"),
        (3, "norm", "not in layer 3", "leave out --layer"),
    ],
)
def test_what_is_not_there_is_refused(
    layer: int | None, component: str | None, words: str, hint: str, graph_of: Callable[[str], Graph]
) -> None:
    graph = graph_of(EIGHT_B)
    with pytest.raises(UsageError, match=words) as refused:
        select(trace(graph), graph, layer, component)
    assert hint in refused.value.hint
