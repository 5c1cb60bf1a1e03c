"""Pages of topics: which models have them, what they say of a model's own numbers, and whose code they cite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atlas import spec
from atlas.errors import SpecError, UsageError
from atlas.graph import check
from atlas.graph.graph import Graph
from atlas.pages import page
from atlas.pages.content import Page
from atlas.spec.library import Library

TOPICS = {
    "alibi": {"bloom-560m", "mpt-7b"},
    "attention_sinks": {"gpt-oss-20b"},
    "gated_delta_rule": {"qwen3-next-80b-a3b", "qwen3.5-27b"},
    "latent_attention": {"deepseek-v2-lite", "deepseek-v3", "glm-4.7-flash"},
    "learned_positions": {"gpt2", "opt-125m", "santacoder-1.1b"},
    "mixture_of_experts": {
        "deepseek-v2-lite",
        "deepseek-v3",
        "gemma-4-26b-a4b",
        "glm-4.5-air",
        "glm-4.7-flash",
        "gpt-oss-20b",
        "granite-3.1-1b-a400m",
        "minimax-m2.5",
        "mixtral-8x7b-v0.1",
        "olmoe-1b-7b",
        "phi-tiny-moe",
        "qwen1.5-moe-a2.7b",
        "qwen3-30b-a3b",
        "qwen3-next-80b-a3b",
    },
    "qk_norm": {
        "exaone-4.0-32b",
        "gemma-3-1b",
        "gemma-4-26b-a4b",
        "minimax-m2.5",
        "olmo-2-7b",
        "olmo-3.1-32b",
        "olmoe-1b-7b",
        "qwen3-0.6b",
        "qwen3-30b-a3b",
        "qwen3-next-80b-a3b",
        "qwen3.5-27b",
    },
    "sliding_window": {
        "exaone-4.0-32b",
        "gemma-2-2b",
        "gemma-3-1b",
        "gemma-4-26b-a4b",
        "gpt-oss-20b",
        "olmo-3.1-32b",
        "phi-3-mini",
        "phi-4-mini",
        "phi-tiny-moe",
        "starcoder2-7b",
    },
    "softcap": {"gemma-2-2b", "gemma-4-26b-a4b"},
}
"""Topic -> the catalogued models that have it, as their publishers' reports and configurations say."""


@pytest.fixture(scope="module")
def topic(graph_of: Callable[[str], Graph], library: Library) -> Callable[[str, str], Page]:
    """A model and a topic -> its page."""
    return lambda model, name: page(graph_of(model), library, name)


@pytest.mark.parametrize("name", TOPICS)
def test_the_models_that_have_a_topic(
    name: str, library: Library, graph_of: Callable[[str], Graph], topic: Callable[[str, str], Page]
) -> None:
    of_meta = set(library.paths("catalogue"))
    having = set()
    for family in library.families():
        for entry in family.models if family.id not in of_meta else ():
            try:
                made = topic(entry.id, name)
            except UsageError:
                continue
            having.add(entry.id)
            assert made.kind == "topic"
            assert made.inputs, entry.id
            assert made.outputs, entry.id
            assert made.sources, entry.id
            assert all(source.repo != "meta-llama/llama3" for source in made.sources), entry.id
    assert having == TOPICS[name]


@pytest.mark.parametrize(
    ("model", "name", "note"),
    [
        # 64 rotated entries of 256 (rotary_dim 64): 32 pairs, the slowest 2π · 10,000^(2 · 31 / 64) = 47,117 positions a turn.
        (
            "gpt-j-6b",
            "rope",
            "a head is h = 256 wide, of which the first 64 rotate: 32 pairs of entries. The first turns by 1 radian per "
            "position, a full turn every 6.283 positions; the last every 47,117 positions",
        ),
        ("gpt-j-6b", "rope", "(hf): the neighbouring entries 2j and 2j + 1"),
        ("qwen3-0.6b", "rope", "(hf): entries j and j + 64 of a head form pair j"),
        (
            "qwen3.5-27b",
            "rope",
            "(hf): entries j and j + 32 of a head form pair j",
        ),  # a quarter of 256 entries
        ("olmo-3.1-32b", "rope", "Scaling in layers of the kind full_attention: rope_type yarn"),
        ("phi-4-mini", "rope", "long_factor with 48 numbers"),
        # 25 layers of 8 heads of 256, 5 of 2 heads of 512, keys and values: 25 × 4,096 + 5 × 2,048 = 112,640.
        (
            "gemma-4-26b-a4b",
            "kv_cache",
            "8 × 256 + 8 × 256 numbers in each of 25 layers, and 2 × 512 + 2 × 512 numbers in each of 5 layers, 112,640 in all",
        ),
        ("gemma-4-26b-a4b", "kv_cache", "a window of 1,024 positions"),
        # 61 layers of a latent of 512 and a rotated key of 64: 61 × 576 = 35,136.
        ("deepseek-v3", "mla", "512 + 64 numbers in each of 61 layers, 35,136 in all"),
        (
            "gemma-3-1b",
            "window",
            "In 22 of the 26 layers with attention a position sees itself and the 511 positions",
        ),
        ("mixtral-8x7b-v0.1", "moe", "In each of 32 layers a token passes through 2 of 8 routed experts."),
        ("deepseek-v3", "moe", "In each of 58 layers a token passes through 8 of 256 routed experts."),
        # 36 of 48 layers; 32 value heads, each a matrix of 128 by 128: 524,288 numbers.
        ("qwen3-next-80b-a3b", "delta-rule", "32 × 128 × 128 = 524,288 numbers in each of 36 layers"),
    ],
)
def test_what_a_page_says_of_the_models_numbers(
    model: str, name: str, note: str, topic: Callable[[str, str], Page]
) -> None:
    assert any(note in said for said in topic(model, name).notes), topic(model, name).notes


def test_scaling_of_one_kind_of_layer_is_not_called_none(topic: Callable[[str, str], Page]) -> None:
    assert "The frequencies are not scaled." in topic("qwen3-0.6b", "rope").notes
    assert "The frequencies are not scaled." not in topic("olmo-3.1-32b", "rope").notes


def test_what_a_step_hands_to_the_next_is_neither_input_nor_output(
    topic: Callable[[str, str], Page],
) -> None:
    latent = topic("deepseek-v3", "latent_attention")
    assert [value.symbol for value in latent.inputs] == ["c", "x"]
    assert [value.symbol for value in latent.outputs] == ["y"]
    norms = topic("qwen3-0.6b", "qk_norm")
    assert [value.symbol for value in norms.inputs] == [value.symbol for value in norms.outputs] == ["q", "k"]


def test_attention_is_not_the_routers_softmax(topic: Callable[[str, str], Page]) -> None:
    (note,) = [note for note in topic("mixtral-8x7b-v0.1", "sdpa").notes if note.startswith("Computed")]
    assert note == "Computed in the steps attention.weights."
    assert topic("gpt-oss-20b", "sdpa").kind == "topic"


def test_a_topic_cites_the_code_of_the_models_architecture(topic: Callable[[str, str], Page]) -> None:
    """Meta's for Llama, which says so; transformers' for others."""
    of_llama = {source.id for source in topic("llama3.1-8b", "rope").sources}
    assert of_llama >= {"rope-frequencies", "rope-apply", "rope-scaling"}
    (source,) = topic("qwen3-0.6b", "rope").sources
    assert (source.relation, source.repo) == ("implementation", "huggingface/transformers")
    assert "qwen3" in source.path


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "expected exactly one of op, component and within"),
        ({"op": "rotate", "component": "mla"}, "expected exactly one of op, component and within"),
        ({"op": "rotat"}, "op = 'rotat': there is no such operation"),
        ({"component": "mal"}, "component = 'mal': there is no such component"),
    ],
)
def test_a_topic_about_nothing_is_refused(
    fields: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = Library()
    monkeypatch.setattr(library, "topics", lambda: [spec.Topic(id="mine", title="Mine", **fields)])
    with pytest.raises(SpecError, match=words):
        check._topics(library)
