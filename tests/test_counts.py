"""Parameter counts of every described model: the figures of the issue, their parts, and how they add up.

The figures are compared elsewhere with other sources: published indexes (`test_against_real`), transformers
(`test_against_transformers`) and Meta's own modules (`test_against_meta`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atlas.analyse import counts, devices, parameters
from atlas.errors import UsageError
from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.report.params import table
from atlas.spec.library import Library

# id: total, logical, catalogue. Of issue 2; where it gives one figure, it is all three.
GOLDEN: dict[str, tuple[int, int, int]] = {
    "llama2-7b": (6_738_415_616, 6_738_415_616, 7_241_732_096),
    "llama2-7b-chat": (6_738_415_616, 6_738_415_616, 7_241_732_096),
    "llama2-13b": (13_015_864_320, 13_015_864_320, 13_854_725_120),
    "llama2-13b-chat": (13_015_864_320, 13_015_864_320, 13_854_725_120),
    "llama2-70b": (68_976_648_192, 68_976_648_192, 68_976_648_192),
    "llama2-70b-chat": (68_976_648_192, 68_976_648_192, 68_473_331_712),
    "llama3-8b": (8_030_261_248, 8_030_261_248, 8_030_261_248),
    "llama3-8b-instruct": (8_030_261_248, 8_030_261_248, 8_030_261_248),
    "llama3-70b": (70_553_706_496, 70_553_706_496, 70_553_706_496),
    "llama3-70b-instruct": (70_553_706_496, 70_553_706_496, 70_553_706_496),
    "llama3.1-8b": (8_030_261_248, 8_030_261_248, 8_030_261_248),
    "llama3.1-8b-instruct": (8_030_261_248, 8_030_261_248, 8_030_261_248),
    "llama3.1-70b": (70_553_706_496, 70_553_706_496, 70_553_706_496),
    "llama3.1-70b-instruct": (70_553_706_496, 70_553_706_496, 70_553_706_496),
    "llama3.1-405b:bf16-mp8": (405_853_388_800, 405_853_388_800, 405_853_388_800),
    "llama3.1-405b-instruct:bf16-mp8": (405_853_388_800, 405_853_388_800, 405_853_388_800),
    "llama3.1-405b:bf16-mp16": (410_081_247_232, 410_081_247_232, 410_081_247_232),
    "llama3.1-405b-instruct:bf16-mp16": (410_081_247_232, 410_081_247_232, 410_081_247_232),
    "llama3.2-1b": (1_235_814_400, 1_498_482_688, 1_498_482_688),
    "llama3.2-1b-instruct": (1_235_814_400, 1_498_482_688, 1_498_482_688),
    "llama3.2-3b": (3_212_749_824, 3_606_752_256, 3_606_752_256),
    "llama3.2-3b-instruct": (3_212_749_824, 3_606_752_256, 3_606_752_256),
    "llama3.3-70b-instruct": (70_553_706_496, 70_553_706_496, 70_553_706_496),
    "llama-guard-2-8b": (8_030_261_248, 8_030_261_248, 7_241_732_096),
    "llama-guard-3-1b": (1_498_482_688, 1_498_482_688, 1_498_482_688),
    "llama-guard-3-8b": (8_030_261_248, 8_030_261_248, 8_030_261_248),
}

# The 8B's components: instances, parameters of one. 4,096 wide, 32 heads of 128 and 8 for keys and values.
EIGHT_B = {
    "tok_embeddings": (1, 525_336_576),
    "attention_norm": (32, 4_096),
    "attention.wq": (32, 16_777_216),
    "attention.wk": (32, 4_194_304),
    "attention.wv": (32, 4_194_304),
    "attention.wo": (32, 16_777_216),
    "ffn_norm": (32, 4_096),
    "feed_forward.w1": (32, 58_720_256),
    "feed_forward.w2": (32, 58_720_256),
    "feed_forward.w3": (32, 58_720_256),
    "norm": (1, 4_096),
    "output": (1, 525_336_576),
}


def test_every_described_model_is_in_the_golden_table(library: Library) -> None:
    """Those of Meta's catalogue; `tests/families` has the figures of the others."""
    families = map(library.family, library.paths("catalogue"))
    described = {entry.id for family in families for entry in family.models if entry.architecture}
    assert described == GOLDEN.keys()


@pytest.mark.parametrize("name", GOLDEN)
def test_totals(name: str, graph_of: Callable[[str], Graph], library: Library) -> None:
    found = counts.count(graph_of(name), library)
    assert (found.total_parameters, found.logical_parameters, found.catalogue_parameters) == GOLDEN[name]


@pytest.mark.parametrize("name", GOLDEN)
def test_everything_listed_adds_up(name: str, graph_of: Callable[[str], Graph], library: Library) -> None:
    graph = graph_of(name)
    total, logical, _ = GOLDEN[name]
    found = counts.count(graph, library, by="tensor")
    assert sum(row.parameters for row in found.components) == total
    assert sum(row.parameters_per_instance * row.instances for row in found.components) == logical
    assert sum(row.parameters for row in found.tensors) == total
    outside = sum(row.parameters for row in found.components if row.instances == 1)
    layers = counts.count(graph, library, by="layer").layers
    assert len(layers) == graph.dims["n_layers"]
    assert outside + sum(row.parameters for row in layers) == total


@pytest.mark.parametrize("name", GOLDEN)
def test_what_a_file_of_each_convention_holds(
    name: str, graph_of: Callable[[str], Graph], library: Library
) -> None:
    """The Hub's files hold a tied matrix once, Meta's hold it twice; and the count is that of the listed tensors."""
    graph = graph_of(name)
    total, logical, _ = GOLDEN[name]
    found = counts.count(graph, library)
    assert found.by_convention == {"hf": total, "meta": logical}
    assert found.stored_elements == total
    assert found.weight_bytes == 2 * total  # BF16 or F16
    for convention in ("hf", "meta"):
        listed = list(tensors.expected(graph, convention))
        elements = 0
        for tensor in listed:
            size = 1
            for length in tensor.shape:
                size *= length
            elements += size
        assert elements == found.by_convention[convention]
        assert len({tensor.name for tensor in listed}) == len(listed)
    tied = total != logical
    # Nine tensors in a layer; embedding, final norm and output beside them.
    assert found.tensor_count == 9 * graph.dims["n_layers"] + (2 if tied else 3)


def test_the_8b_component_by_component(graph_of: Callable[[str], Graph], library: Library) -> None:
    found = counts.count(graph_of("llama3.1-8b"), library)
    assert {row.id: (row.instances, row.parameters_per_instance) for row in found.components} == EIGHT_B
    assert found.tensor_count == 291


def test_calculations_are_written_out(graph_of: Callable[[str], Graph], library: Library) -> None:
    how = {row.id: row.calculation for row in counts.count(graph_of("llama3.1-8b"), library).components}
    assert how["output"] == "128,256 × 4,096 = 525,336,576"
    assert how["attention.wk"] == "1,024 × 4,096 = 4,194,304"
    assert how["feed_forward.w2"] == "4,096 × 14,336 = 58,720,256"
    assert how["norm"] == "4,096"


@pytest.mark.parametrize("name", GOLDEN)
def test_every_calculation_is_true(name: str, graph_of: Callable[[str], Graph], library: Library) -> None:
    for row in counts.count(graph_of(name), library).components:
        factors, _, result = row.calculation.replace(",", "").partition(" = ")
        product = 1
        for factor in factors.split(" × "):
            product *= int(factor)
        assert product == int(result or factors) == row.parameters_per_instance


def test_a_tied_matrix_is_counted_where_it_is_stored(
    graph_of: Callable[[str], Graph], library: Library
) -> None:
    found = counts.count(graph_of("llama3.2-1b"), library, by="tensor")
    rows = {row.id: row for row in found.components}
    assert rows["tok_embeddings"].parameters == 128_256 * 2_048
    assert rows["output"].parameters == 0
    assert rows["output"].parameters_per_instance == 128_256 * 2_048
    assert rows["output"].tied_to == "tok_embeddings"
    listed = {row.component: row for row in found.tensors}
    assert listed["output"].tied_to == "tok_embeddings.weight"
    assert listed["output"].name == {"hf": None, "meta": "output.weight"}
    assert all(row.tied_to is None for row in counts.count(graph_of("llama-guard-3-1b"), library).components)


@pytest.mark.parametrize("name", GOLDEN)
def test_one_token_passes_through_all_of_a_dense_model(name: str, graph_of: Callable[[str], Graph]) -> None:
    """A dense model chooses nothing, and its embedding and output count whole: a tied matrix is still one."""
    assert parameters.active(graph_of(name)) == GOLDEN[name][0]


def test_tensors_are_listed_in_execution_order_with_both_names(
    graph_of: Callable[[str], Graph], library: Library
) -> None:
    listed = counts.count(graph_of("llama3.1-8b"), library, by="tensor").tensors
    assert [row.name["meta"] for row in listed[:10]] == [
        "tok_embeddings.weight",
        "layers.0.attention_norm.weight",
        "layers.0.attention.wq.weight",
        "layers.0.attention.wk.weight",
        "layers.0.attention.wv.weight",
        "layers.0.attention.wo.weight",
        "layers.0.ffn_norm.weight",
        "layers.0.feed_forward.w1.weight",
        "layers.0.feed_forward.w2.weight",
        "layers.0.feed_forward.w3.weight",
    ]
    assert listed[-1].name == {"meta": "output.weight", "hf": "lm_head.weight"}
    assert listed[2].name["hf"] == "model.layers.0.self_attn.q_proj.weight"
    assert listed[3].shape == (1_024, 4_096)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_component_is_cited(name: str, graph_of: Callable[[str], Graph], library: Library) -> None:
    for row in counts.count(graph_of(name), library).components:
        assert row.cites, row.id
        assert row.name, row.id


# ---------------------------------------------------------------- one layer, names, and the order of rows

LAYER_OF_8B = 2 * 4_096 + 2 * 16_777_216 + 2 * 4_194_304 + 3 * 58_720_256


def test_one_layer(graph_of: Callable[[str], Graph], library: Library) -> None:
    """Two norms, wq and wo, wk and wv, three of the feed-forward; the totals remain the model's."""
    found = counts.count(graph_of("llama3.1-8b"), library, by="tensor", layer=31)
    assert found.layer_parameters == sum(row.parameters for row in found.components) == LAYER_OF_8B
    assert found.total_parameters == 8_030_261_248
    assert [row.id for row in found.components] == list(EIGHT_B)[1:-2]
    assert {row.instances for row in found.components} == {1}
    assert {row.layer for row in found.tensors} == {31}
    assert len(found.tensors) == 9
    assert (
        counts.count(graph_of("llama3.1-8b"), library, by="layer", layer=7).layers[0].parameters
        == LAYER_OF_8B
    )


@pytest.mark.parametrize("layer", [32, -1, 10**400])
def test_a_layer_that_is_not_there(layer: int, graph_of: Callable[[str], Graph], library: Library) -> None:
    with pytest.raises(UsageError, match=r"--layer is .*, expected 0 to 31"):
        counts.count(graph_of("llama3.1-8b"), library, layer=layer)


def test_the_hubs_words_for_components(graph_of: Callable[[str], Graph], library: Library) -> None:
    """As transformers' modules of a Llama are called, within a layer."""
    found = counts.count(graph_of("llama3.1-8b"), library)
    assert [row.names["hf"] for row in found.components] == [
        "embed_tokens",
        "input_layernorm",
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "post_attention_layernorm",
        "mlp.gate_proj",
        "mlp.down_proj",
        "mlp.up_proj",
        "norm",
        "lm_head",
    ]
    assert [row.names["meta"] for row in found.components] == [row.id for row in found.components]


def test_whose_names_come_first(
    graph_of: Callable[[str], Graph], bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    assert counts.count(graph_of("llama3.1-8b"), library).names == "meta"
    assert counts.count(bound(small), library).names == "hf"
    assert counts.count(bound(small), library, names="meta").names == "meta"
    with pytest.raises(UsageError, match="no names in the convention 'gguf'"):
        counts.count(bound(small), library, names="gguf")


def test_rows_that_conventions_store_in_another_order(
    graph_of: Callable[[str], Graph], library: Library
) -> None:
    """Of queries and keys, which rotate: transformers' conversion script permutes wq and wk, and no other matrix."""
    found = counts.count(graph_of("llama3.1-8b"), library, by="tensor")
    assert {row.component for row in found.tensors if not row.same_order} == {"attention.wq", "attention.wk"}
    rows = {row.component: row.layouts for row in found.tensors}
    assert rows["attention.wq"] == {"meta": "(n_heads pair two) dim", "hf": "(n_heads two pair) dim"}
    assert rows["attention.wk"]["hf"] == "(n_kv_heads two pair) dim"
    assert len(set(rows["attention.wv"].values())) == 1
    (note,) = [note for note in found.notes if "different order" in note]
    assert "attention.wq and attention.wk" in note
    assert not any("different order" in note for note in counts.count(graph_of("llama3.1-8b"), library).notes)


def test_bytes_of_every_row(graph_of: Callable[[str], Graph], library: Library) -> None:
    found = counts.count(graph_of("llama3.1-8b"), library, by="tensor")
    assert sum(row.bytes or 0 for row in found.components) == 2 * 8_030_261_248
    assert sum(row.bytes or 0 for row in found.tensors) == 2 * 8_030_261_248


def test_the_table_marks_whose_code_is_cited(
    graph_of: Callable[[str], Graph], bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    """Meta's code is that of Meta's models; of another Llama it is a model that computes the same."""
    own = table(counts.count(graph_of("llama3.1-8b"), library), "component").markdown()
    assert "model.py" in own
    assert "contextual" not in own
    for kind, file, relation in (
        ("llama", "model.py", "contextual"),
        ("mistral", "modeling_mistral.py", "implementation"),
    ):
        graph = bound(small | {"model_type": kind, "sliding_window": None})
        lines = table(counts.count(graph, library), "component").markdown().splitlines()[2:-1]
        assert len(lines) == len(graph.weights)
        assert all(file in line and f"({relation})" in line for line in lines)


# ---------------------------------------------------------------- over several devices


def test_devices_split_matrices_and_repeat_vectors(graph_of: Callable[[str], Graph]) -> None:
    """As Meta's model-parallel layers do: each matrix by the number of devices, each norm whole on every one."""
    norms = 65 * 4_096
    assert devices.per_device(graph_of("llama3.1-8b"), 1) == 8_030_261_248
    assert devices.per_device(graph_of("llama3.1-8b"), 8) == (8_030_261_248 - norms) // 8 + norms


def test_keys_and_values_repeat_beyond_one_head_for_each_device(
    graph_of: Callable[[str], Graph], library: Library
) -> None:
    """Sixteen devices and 8 key/value heads: two devices have the same head, so wk and wv are divided in 8 only."""
    norms, keys_and_values = 65 * 4_096, 32 * 2 * 4_194_304
    others = 8_030_261_248 - norms - keys_and_values
    assert devices.per_device(graph_of("llama3.1-8b"), 16) == others // 16 + keys_and_values // 8 + norms
    found = counts.count(graph_of("llama3.1-8b"), library, devices=16)
    assert found.kv_head_copies == 2
    assert any("8 key and value heads on 16 devices: each is on 2 devices" in note for note in found.notes)
    alone = counts.count(graph_of("llama3.1-8b"), library, devices=8)
    assert alone.kv_head_copies == 1
    assert not any("devices" in note for note in alone.notes)


SIZES = {"vocab_size": 32_000, "hidden_size": 6_656, "intermediate_size": 17_920, "num_hidden_layers": 60}


@pytest.mark.parametrize(
    ("change", "many", "words", "hint"),
    [
        # 6,656 columns divide by 8, 52 heads do not; gcd(52, 17,920, 32,000) = 4.
        (
            SIZES | {"num_attention_heads": 52},
            8,
            "attention.wq: n_heads is 52 (query heads), which does not divide evenly over 8 devices",
            "over 2 or 4 devices",
        ),
        # 40 heads over 16 devices; gcd(40, 13,824, 32,000) = 8.
        (
            {
                "hidden_size": 5_120,
                "num_attention_heads": 40,
                "intermediate_size": 13_824,
                "vocab_size": 32_000,
            },
            16,
            "attention.wq: n_heads is 40",
            "over 2, 4 or 8 devices",
        ),
        # 32 heads over 64 devices; gcd(32, 11,008, 32,000) = 32.
        (
            {
                "hidden_size": 4_096,
                "num_attention_heads": 32,
                "intermediate_size": 11_008,
                "vocab_size": 32_000,
            },
            64,
            "attention.wq: n_heads is 32",
            "over 2, 4, 8, 16 or 32 devices",
        ),
        # 32,001 = 3 × 10,667 rows, and gcd(32, 32,001) = 1.
        (
            {
                "hidden_size": 4_096,
                "num_attention_heads": 32,
                "intermediate_size": 11_008,
                "vocab_size": 32_001,
            },
            2,
            "output: vocab_size is 32,001",
            "no number of devices divides every matrix of this model; vocab_size padded to 32,002",
        ),
        # 12 query heads divide by 4; 6 key and value heads neither divide by it nor repeat evenly.
        (
            {"num_attention_heads": 12, "num_key_value_heads": 6, "intermediate_size": 80},
            4,
            "attention.wk: n_kv_heads is 6 (key and value heads)",
            "over 2 devices",
        ),
        # 80 = 16 × 5 columns of the feed-forward over 32 devices.
        (
            {"hidden_size": 128, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 96},
            32,
            "feed_forward.w1: ffn_dim is 80",
            "over 2, 4, 8 or 16 devices; ffn_dim padded to 96",
        ),
    ],
)
def test_heads_and_rows_are_divided_whole(
    change: dict[str, Any],
    many: int,
    words: str,
    hint: str,
    bound: Callable[..., Graph],
    small: dict[str, Any],
) -> None:
    if "num_key_value_heads" not in change:
        small["num_key_value_heads"] = None
    graph = bound(small | change)
    with pytest.raises(UsageError) as caught:
        devices.per_device(graph, many)
    assert words in caught.value.message
    assert hint in caught.value.hint
    for fine in devices.dividing(graph):
        devices.per_device(graph, fine)


def test_one_key_and_value_head_is_on_every_device(
    bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    """Multi-query: 12 query heads of 4 over 3 devices; 48 wide, 81 inside, 102 tokens, 3 layers, one key/value head."""
    sizes = {"num_key_value_heads": 1, "intermediate_size": 81, "vocab_size": 102}
    graph = bound(small | sizes)
    layer = 2 * 48 * 48 // 3 + 2 * 4 * 48 + 3 * 81 * 48 // 3 + 2 * 48
    assert devices.per_device(graph, 3) == 2 * 102 * 48 // 3 + 3 * layer + 48
    assert devices.kv_head_copies(graph, 3) == 3


def test_biases_are_divided_with_their_rows(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    """Biases of queries, keys and values go with the heads; that of the output projection is added once, whole."""
    plain = devices.per_device(bound(small), 2)
    biased = devices.per_device(bound(small | {"attention_bias": True}), 2)
    assert biased - plain == 3 * ((48 + 24 + 24) // 2 + 48)


@pytest.mark.parametrize(
    ("many", "words"), [(0, "expected 1 or more"), (7, "does not divide evenly over 7"), (2**41, "at most")]
)
def test_devices_that_do_not_fit_are_refused(many: int, words: str, graph_of: Callable[[str], Graph]) -> None:
    with pytest.raises(UsageError, match=words):
        devices.per_device(graph_of("llama3.1-8b"), many)


def test_a_tied_matrix_is_on_the_devices_once(
    graph_of: Callable[[str], Graph], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    """And is divided along the vocabulary, as the output needs it."""
    assert devices.per_device(graph_of("llama3.2-1b"), 1) == 1_235_814_400
    odd = bound(small | {"tie_word_embeddings": True, "vocab_size": 101})
    with pytest.raises(UsageError, match="output: vocab_size is 101"):
        devices.per_device(odd, 2)
