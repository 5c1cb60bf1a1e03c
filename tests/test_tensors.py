"""What a checkpoint holds by a convention: every weight named once, every layout a rearrangement, names that match back."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas.analyse import parameters
from atlas.errors import SpecError, UsageError
from atlas.graph import tensors
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.spec.library import Library, builtin_folder

DECODER = "architectures/decoder.toml"
EMBED = '"model.embed_tokens.weight"                            = "tok_embeddings.weight"'
QUERY = '"model.layers.{layer}.self_attn.q_proj.weight"         = "attention.wq"'
VALUE = '"model.layers.{layer}.self_attn.v_proj.weight"         = "attention.wv"'
GATE = '"model.layers.{layer}.mlp.gate_proj.weight"            = "feed_forward.w1"'
UP = '"model.layers.{layer}.mlp.up_proj.weight"              = "feed_forward.w3"'
ATTENTION_NORM = '"model.layers.{layer}.input_layernorm.weight"          = "attention_norm.weight"'
FFN_NORM = '"model.layers.{layer}.post_attention_layernorm.weight" = "ffn_norm.weight"'
NORM = '"model.norm.weight"                                    = "norm.weight"'

WRONG: dict[str, tuple[str, str, str]] = {
    "a weight without a name": (VALUE, "", "no name for attention.wv"),
    "two weights without a name": (f"{GATE}\n", "# ", "no name for feed_forward.w1, feed_forward.w2"),
    "a weight named twice": (
        NORM,
        f'{NORM}\n"model.final.weight" = "norm.weight"',
        "norm.weight has two names",
    ),
    "a weight packed with itself": (
        NORM,
        '"model.norm.weight" = "norm.weight + norm.weight = *"',
        "norm.weight has two names",
    ),
    "a weight its component has not": (
        VALUE,
        '"model.layers.{layer}.self_attn.v_proj.weight" = "attention.wz"',
        "contains attention.wz, which no component declares",
    ),
    "a weight of a node there is none of": (
        NORM,
        f'{NORM}\n"model.bias" = "norms.bias"',
        "'model.bias' contains norms.bias, which no component declares",
    ),
    "an optional weight misspelt": (
        NORM,
        f'{NORM}\n"model.layers.{{layer}}.b" = "attention.bz"',
        "contains attention.bz, which no component declares",
    ),
    "a layout of other axes": (
        QUERY,
        QUERY.replace('"attention.wq"', '"attention.wq = (n_kv_heads two pair) dim"'),
        "((n_kv_heads two pair) dim) is not a permutation of ((n_heads head_dim) dim)",
    ),
    "a layout that lacks an axis": (
        QUERY,
        QUERY.replace('"attention.wq"', '"attention.wq = (n_heads two) dim"'),
        "((n_heads two) dim) is not a permutation of ((n_heads head_dim) dim)",
    ),
    "a layout that says an axis twice": (
        VALUE,
        VALUE.replace('"attention.wv"', '"attention.wv = (n_kv_heads head_dim dim) dim"'),
        "is not a permutation of ((n_kv_heads head_dim) dim)",
    ),
    "a layer without a placeholder": (
        VALUE,
        '"model.v_proj.weight" = "attention.wv"',
        "'model.v_proj.weight': attention.wv is in every layer of a stack, expected the placeholder {layer}",
    ),
    "a placeholder without a layer": (
        NORM,
        '"model.{layer}.norm.weight" = "norm.weight"',
        "'model.{layer}.norm.weight': n_layers is not an axis of norm.weight",
    ),
    "a placeholder that counts nothing": (
        VALUE,
        VALUE.replace("v_proj", "v_proj.{column}"),
        "no axis has the index {column}",
    ),
    "braces that are no placeholder": (
        NORM,
        '"model.norm.{}" = "norm.weight"',
        "'model.norm.{}': expected each placeholder as {word}",
    ),
    "weights packed without saying where": (
        f"{GATE}\n",
        '"model.layers.{layer}.mlp.gate_up" = "feed_forward.w1 + feed_forward.w3"\n',
        "2 weights in one tensor need one '*' in the layout, found 0",
    ),
    "weights packed across layers": (
        ATTENTION_NORM,
        '"model.norms.{layer}" = "attention_norm.weight + norm.weight = *"',
        "packs weights of different layers",
    ),
    "weights packed of which some are not there": (
        VALUE,
        VALUE.replace('"attention.wv"', '"attention.wv + attention.bv = *"'),
        "packs several weights, and this model has only some of them",
    ),
    "weights packed along an axis one of them has not": (
        FFN_NORM,
        '"model.layers.{layer}.mlp.gate" = "ffn_norm.weight + feed_forward.w1 = * ffn_dim"',
        "is not a permutation of (dim)",
    ),
    "a block there is none of": (
        VALUE,
        '"model.layers.{layer}.self_attn.v_proj.weight" = { holds = "attention.wv", in = "dense" }',
        "in = 'dense': no such block has attention",
    ),
    "a block that has no such weight": (
        VALUE,
        '"model.layers.{layer}.self_attn.v_proj.weight" = { holds = "attention.wv", in = "feed_forward" }',
        "in = 'feed_forward': no such block has attention",
    ),
    "what is no weight": (NORM, '"model.norm.weight" = "norm"', "expected weights such as 'attention.wq'"),
}


def over(old: str, new: str, overlay: Callable[[Mapping[str, str]], Library]) -> Library:
    text = (builtin_folder() / DECODER).read_text()
    assert text.count(old) == 1, old
    return overlay({DECODER: text.replace(old, new)})


def made(settings: Mapping[str, Any], library: Library) -> Graph:
    """The configuration, bound to the architecture whose own rows these are."""
    model = config.describe(settings, library, id="a test's configuration")
    return bind(replace(model, architecture="decoder"), library)


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_convention_is_refused(
    way: str, small: dict[str, Any], overlay: Callable[[Mapping[str, str]], Library]
) -> None:
    old, new, words = WRONG[way]
    graph = made(small, over(old, new, overlay))
    with pytest.raises(SpecError) as caught:
        tensors.rows(graph, "hf")
    assert words in caught.value.message


def test_a_convention_there_is_none_of(graph_of: Callable[[str], Graph]) -> None:
    with pytest.raises(UsageError, match="llama has no names in the convention 'gguf'") as caught:
        tensors.rows(graph_of("llama3.1-8b"), "gguf")
    assert caught.value.hint == "use meta, hf"


@pytest.mark.parametrize("convention", ["hf", "meta"])
@pytest.mark.parametrize(
    "change", [{}, {"attention_bias": True, "mlp_bias": True}, {"tie_word_embeddings": True}]
)
def test_names_match_back_to_their_row_and_layer(
    convention: str, change: dict[str, Any], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    """Every name expands from exactly one row, which gives its layer back; no other row matches it."""
    graph = bound(small | change)
    rows = tensors.rows(graph, convention)
    for tensor in tensors.expected(graph, convention):
        matching = [row for row in rows if row.template.match(tensor.name) is not None]
        assert matching == [tensor.row]
        indices = tensor.row.template.match(tensor.name)
        assert indices == ({} if tensor.layer is None else {"layer": tensor.layer})
        assert tensor.row.template.expand(**indices) == tensor.name


@settings(deadline=None, max_examples=60)
@given(
    kv_heads=st.integers(1, 5),
    group=st.integers(1, 4),
    pairs=st.integers(1, 6),
    width=st.integers(1, 40),
    inner=st.integers(1, 50),
    layers=st.integers(1, 12),
    vocabulary=st.integers(1, 60),
    switches=st.tuples(st.booleans(), st.booleans(), st.booleans()),
)
def test_a_count_equals_the_sum_over_expanded_tensors(
    kv_heads: int,
    group: int,
    pairs: int,
    width: int,
    inner: int,
    layers: int,
    vocabulary: int,
    switches: tuple[bool, bool, bool],
    bound: Callable[..., Graph],
) -> None:
    """Whatever the sizes: the count is arithmetic, and what either convention lists adds up to it."""
    tied, attention_bias, mlp_bias = switches
    graph = bound(
        {
            "model_type": "llama",
            "hidden_size": width,
            "intermediate_size": inner,
            "num_hidden_layers": layers,
            "num_attention_heads": kv_heads * group,
            "num_key_value_heads": kv_heads,
            "head_dim": 2 * pairs,
            "vocab_size": vocabulary,
            "tie_word_embeddings": tied,
            "attention_bias": attention_bias,
            "mlp_bias": mlp_bias,
        }
    )
    q, k = kv_heads * group * 2 * pairs, kv_heads * 2 * pairs
    layer = 2 * width + 2 * q * width + 2 * k * width + 3 * inner * width
    layer += attention_bias * (q + 2 * k + width) + mlp_bias * (2 * inner + width)
    total = (1 if tied else 2) * vocabulary * width + layers * layer + width
    assert parameters.total(graph) == total
    for convention, expected in (("hf", total), ("meta", total + tied * vocabulary * width)):
        listed = list(tensors.expected(graph, convention))
        assert len({tensor.name for tensor in listed}) == len(listed)
        assert sum(math.prod(tensor.shape) for tensor in listed) == expected
        assert parameters.stored(graph, convention) == (len(listed), expected)


@pytest.mark.parametrize("convention", ["hf", "meta"])
def test_a_row_holds_as_many_numbers_as_its_weights(
    convention: str, bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    graph = bound(small | {"attention_bias": True, "mlp_bias": True})
    for row in tensors.rows(graph, convention):
        assert math.prod(row.shape) == sum(graph.size(weight) for weight in row.weights)


def test_the_rows_of_the_hub_lie_by_halves(graph_of: Callable[[str], Graph]) -> None:
    """The vocabulary has the Hub's order of rows, the two halves of a head's planes apart; Meta's files have neighbours."""
    rows = {row.weights[0].id: row for row in tensors.rows(graph_of("llama3.1-8b"), "hf")}
    for weight, heads in (("wq", "n_heads"), ("wk", "n_kv_heads"), ("wv", "n_kv_heads")):
        assert rows[f"attention.{weight}"].layouts == (((heads, "head_dim"), ("dim",)),)
    meta = {row.weights[0].id: row for row in tensors.rows(graph_of("llama3.1-8b"), "meta")}
    assert meta["attention.wq"].layouts == ((("n_heads", "pair", "two"), ("dim",)),)
    assert meta["attention.wk"].layouts == ((("n_kv_heads", "pair", "two"), ("dim",)),)
    assert meta["attention.wv"].layouts == ((("n_kv_heads", "head_dim"), ("dim",)),)


def test_weights_side_by_side(small: dict[str, Any], overlay: Callable[[Mapping[str, str]], Library]) -> None:
    """Packed rows: the width of both along `*`, everything else as it was; and the count stays the same."""
    library = over(
        f"{GATE}\n",
        '"model.layers.{layer}.mlp.gate_up" = "feed_forward.w1 + feed_forward.w3 = dim *"\n',
        overlay,
    )
    text = (library.folders[-1] / DECODER).read_text()
    (library.folders[-1] / DECODER).write_text(text.replace(UP, ""))
    graph = made(small, Library(library.folders[-1]))
    packed = next(row for row in tensors.rows(graph, "hf") if len(row.weights) == 2)
    assert packed.shape == (48, 160)
    assert packed.layouts == ((("dim",), ("ffn_dim",)), (("dim",), ("ffn_dim",)))
    assert len(list(tensors.expected(graph, "hf"))) == 8 * 3 + 3
    elements = sum(math.prod(tensor.shape) for tensor in tensors.expected(graph, "hf"))
    assert elements == 2 * 100 * 48 + 48 + 3 * (2 * 48 + 2 * 48 * 48 + 2 * 24 * 48 + 3 * 80 * 48)


def test_a_tied_matrix_is_named_where_it_is_stored(
    bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    tied = bound(small | {"tie_word_embeddings": True})
    hub = [tensor.name for tensor in tensors.expected(tied, "hf")]
    assert "lm_head.weight" not in hub
    assert "model.embed_tokens.weight" in hub
    assert "output.weight" in [tensor.name for tensor in tensors.expected(tied, "meta")]
    (row,) = [row for row in tensors.rows(tied, "hf") if row.tied_to]
    assert row.template.text == "lm_head.weight"


def test_tensors_come_layer_by_layer(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    names = [tensor.name for tensor in tensors.expected(bound(small), "meta")]
    assert names[0] == "tok_embeddings.weight"
    assert names[1:4] == [f"layers.{layer}.attention_norm.weight" for layer in range(3)]
    assert names[-2:] == ["norm.weight", "output.weight"]
