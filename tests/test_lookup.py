"""Which page a name means, and what the pages of topics and of models that follow another one say."""

from __future__ import annotations

import math

import pytest

import atlas
from atlas.api.model import Model
from atlas.errors import UsageError
from atlas.pages import page


@pytest.fixture(scope="module")
def llama() -> Model:
    return atlas.load("llama3.1-8b")


@pytest.mark.parametrize(
    ("name", "node", "kind"),
    [
        ("attention.wq", "attention.wq", "learned"),
        ("ATTENTION.WQ", "attention.wq", "learned"),
        ("logits", "output.logits", "activation"),
        ("norm", "norm", "learned"),
        # steps as `atlas trace` prints them, with their layer and without
        ("attention.q_rotated", "attention.q_rotated", "step"),
        ("layers.3.attention.q_rotated", "attention.q_rotated", "step"),
        ("layers.0–31.attention.q_rotated", "attention.q_rotated", "step"),
        ("layers.0-31.attention.scores", "attention.scores", "activation"),
        # stored tensors, in both conventions
        ("model.layers.31.self_attn.q_proj.weight", "attention.wq", "learned"),
        ("layers.0.feed_forward.w2.weight", "feed_forward.w2", "learned"),
        ("model.embed_tokens.weight", "tok_embeddings", "learned"),
        ("lm_head.weight", "output", "learned"),
        # words of the Hub's names
        ("q_proj", "attention.wq", "learned"),
        ("mlp.gate_proj", "feed_forward.w1", "learned"),
        ("self_attn", "attention", "learned"),
        ("mlp", "feed_forward", "learned"),
        ("embed_tokens", "tok_embeddings", "learned"),
        ("lm_head", "output", "learned"),
        ("input_layernorm", "attention_norm", "learned"),
        # topics
        ("rope", "rope", "topic"),
        ("KV-cache", "kv_cache", "topic"),
        ("softmax", "softmax", "topic"),
        ("attention", "attention", "learned"),
    ],
)
def test_what_a_name_means(llama: Model, name: str, node: str, kind: str) -> None:
    found = llama.explain(name)
    assert (found.node, found.kind) == (node, kind)


def test_every_step_of_the_trace_has_a_page(llama: Model) -> None:
    steps = {step.id for step in llama.trace().steps if step.layer in (None, 0, 31)}
    assert len(steps) > 40
    for id in steps:
        assert llama.explain(id).outputs, id


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("layers.32.attention.q", "no layer 32: its layers are 0 to 31"),
        ("model.layers.32.mlp.up_proj.weight", "an index in the name is too large"),
        ("gate_projj", "no component"),
        ("layers", "no component"),  # a word of every name means nothing
        ("weight", "no component"),
        ("", "no component"),
        ("x" * 10_000, "no component"),
    ],
)
def test_what_has_no_page_is_refused(llama: Model, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        llama.explain(name)


def test_the_page_of_rope_has_the_models_own_numbers(llama: Model) -> None:
    notes = " ".join(llama.explain("rope").notes)
    # The last of 64 pairs has the frequency θ^(−126/128); a full turn is 2π of it.
    assert f"{2 * math.pi * 500_000 ** (126 / 128):,.0f}" in notes
    assert "entries j and j + 64" in notes  # transformers' rotate_half splits a head of 128 in halves
    assert "entries 2j and 2j + 1" in notes  # Meta's view_as_complex pairs neighbours
    assert (
        "factor 8.0, low_freq_factor 1.0, high_freq_factor 4.0, original_max_position_embeddings 8192"
        in notes
    )
    assert "not scaled" not in notes
    assert "not scaled" in " ".join(atlas.load("llama3-8b").explain("rope").notes)


def test_the_page_of_the_kv_cache_counts_it(llama: Model) -> None:
    # 32 layers × 2 × 8 heads × 128 = 65,536 numbers, 131,072 bytes in 16 bits: the 128 KiB per token that engines report.
    assert "65,536 in all: 131,072 bytes" in " ".join(llama.explain("kv_cache").notes)


def test_llama_3_1_differs_from_3_in_rope_and_context_and_nothing_else(llama: Model) -> None:
    facts = llama.explain().facts
    assert facts.differs_from == "llama3-8b"
    assert {row.name.partition(".")[0] for row in facts.differences} == {"context_length", "rope"}
    found = {row.name: (row.before, row.now) for row in facts.differences}
    assert found["context_length"] == (8_192, 131_072)
    assert found["rope.factor"] == (None, 8.0)
    assert facts.nodes[0] == "tok_embeddings"
    assert facts.nodes[-1] == "output"


def test_names_in_each_convention_stand_on_the_page(llama: Model) -> None:
    stored = {each.convention: each for each in llama.explain("wk").stored}
    assert stored["hf"].name == "model.layers.{layer}.self_attn.k_proj.weight"
    assert stored["meta"].name == "layers.{layer}.attention.wk.weight"
    assert stored["hf"].shape == stored["meta"].shape == (1_024, 4_096)
    assert stored["hf"].layout != stored["meta"].layout


def test_a_model_has_the_topics_that_it_has_steps_of(llama: Model) -> None:
    """A dense model with plain attention has four; asking for another one is refused, naming these."""
    has = {"attention", "kv_cache", "rope", "softmax"}
    for topic in llama.library.topics():
        for name in (topic.id, *topic.aliases):
            if topic.id in has:
                assert page(llama.graph, llama.library, name).kind in {"topic", "activation", "learned"}
    with pytest.raises(UsageError) as refused:
        llama.explain("mixture_of_experts")
    assert refused.value.hint.endswith("topics are attention, kv_cache, rope, softmax")
