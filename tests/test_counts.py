"""Parameter counts of every described model: the figures of the issue, their parts, and how they add up.

What the figures rest on is tested elsewhere: against published indexes (`test_against_real`), transformers
(`test_against_transformers`) and Meta's own modules (`test_against_meta`).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atlas.analyse import counts, parameters
from atlas.errors import UsageError
from atlas.graph import tensors
from atlas.graph.graph import Graph
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
    described = {entry.id for family in library.families() for entry in family.models if entry.architecture}
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


# ---------------------------------------------------------------- over several devices


def test_devices_split_matrices_and_repeat_vectors(graph_of: Callable[[str], Graph]) -> None:
    """As Meta's model-parallel layers do: each matrix by the number of devices, each norm whole on every one."""
    norms = 65 * 4_096
    assert parameters.per_device(graph_of("llama3.1-8b"), 1) == 8_030_261_248
    assert parameters.per_device(graph_of("llama3.1-8b"), 8) == (8_030_261_248 - norms) // 8 + norms


def test_keys_and_values_repeat_beyond_one_head_for_each_device(graph_of: Callable[[str], Graph]) -> None:
    """Sixteen devices and 8 key/value heads: two devices hold the same head, so wk and wv are cut in 8 only."""
    norms, keys_and_values = 65 * 4_096, 32 * 2 * 4_194_304
    others = 8_030_261_248 - norms - keys_and_values
    assert parameters.per_device(graph_of("llama3.1-8b"), 16) == others // 16 + keys_and_values // 8 + norms


@pytest.mark.parametrize(
    ("devices", "words"), [(0, "expected 1 or more"), (7, "cannot be cut evenly over 7")]
)
def test_devices_that_do_not_fit_are_refused(
    devices: int, words: str, graph_of: Callable[[str], Graph]
) -> None:
    with pytest.raises(UsageError, match=words):
        parameters.per_device(graph_of("llama3.1-8b"), devices)


def test_a_tied_matrix_is_on_the_devices_once(graph_of: Callable[[str], Graph]) -> None:
    assert parameters.per_device(graph_of("llama3.2-1b"), 1) == 1_235_814_400
