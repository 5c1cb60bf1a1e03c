"""What differs between two models, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atlas.analyse.diff import diff
from atlas.graph.graph import Graph


def test_a_model_and_itself(graph_of: Callable[[str], Graph]) -> None:
    found = diff(graph_of("llama3.1-8b"), graph_of("llama3.1-8b"))
    assert (found.dims, found.components) == ((), ())
    assert (found.tensors.only_a, found.tensors.only_b, found.tensors.shape) == ((), (), ())
    assert found.same_tensors
    assert not found.differs


def test_llama_3_and_3_1_differ_in_no_tensor(graph_of: Callable[[str], Graph]) -> None:
    """A longer context by scaled positions: Meta's scaling has factor 8, bounds 1 and 4, and 8,192 positions before."""
    found = diff(graph_of("llama3-8b"), graph_of("llama3.1-8b"))
    assert {dim.name: (dim.a, dim.b) for dim in found.dims} == {
        "context_length": (8_192, 131_072),
        "rope.rope_type": (None, "llama3"),
        "rope.factor": (None, 8.0),
        "rope.low_freq_factor": (None, 1.0),
        "rope.high_freq_factor": (None, 4.0),
        "rope.original_max_position_embeddings": (None, 8_192),
    }
    assert found.components == ()
    assert found.same_tensors
    assert found.differs
    assert found.totals == {"a": 8_030_261_248, "b": 8_030_261_248}
    assert (found.a, found.b) == ("llama3-8b", "llama3.1-8b")


def test_base_and_instruct_are_one_architecture(graph_of: Callable[[str], Graph]) -> None:
    assert not diff(graph_of("llama3.1-8b"), graph_of("llama3.1-8b-instruct")).differs


def test_8b_and_70b(graph_of: Callable[[str], Graph]) -> None:
    found = diff(graph_of("llama3.1-8b"), graph_of("llama3.1-70b"))
    assert {dim.name: (dim.a, dim.b) for dim in found.dims} == {
        "dim": (4_096, 8_192),
        "n_layers": (32, 80),
        "n_heads": (32, 64),
        "ffn_dim": (14_336, 28_672),
    }
    components = {row.id: (row.a, row.b) for row in found.components}
    assert len(components) == 12
    assert components["output"] == (128_256 * 4_096, 128_256 * 8_192)
    assert components["attention.wk"] == (32 * 1_024 * 4_096, 80 * 1_024 * 8_192)
    assert not found.same_tensors
    assert found.tensors.only_a == ()
    assert len(found.tensors.only_b) == 48 * 9
    assert found.tensors.only_b[0] == "model.layers.32.input_layernorm.weight"
    assert len(found.tensors.shape) == 291
    shapes = {row.name: (row.a, row.b) for row in found.tensors.shape}
    assert shapes["model.layers.31.mlp.up_proj.weight"] == ((14_336, 4_096), (28_672, 8_192))
    assert found.totals == {"a": 8_030_261_248, "b": 70_553_706_496}


def test_the_two_405b(graph_of: Callable[[str], Graph]) -> None:
    """16 key and value heads for 8: wk and wv twice as tall in 126 layers, and nothing else."""
    found = diff(graph_of("llama3.1-405b:bf16-mp8"), graph_of("llama3.1-405b:bf16-mp16"))
    assert {dim.name: (dim.a, dim.b) for dim in found.dims} == {"n_kv_heads": (8, 16)}
    assert [row.id for row in found.components] == ["attention.wk", "attention.wv"]
    assert len(found.tensors.shape) == 2 * 126
    assert found.totals["b"] - found.totals["a"] == 126 * 2 * 8 * 128 * 16_384


def test_a_tied_model_and_the_one_made_from_it_untied(graph_of: Callable[[str], Graph]) -> None:
    found = diff(graph_of("llama3.2-1b"), graph_of("llama-guard-3-1b"))
    assert {dim.name: (dim.a, dim.b) for dim in found.dims} == {
        "tied": (True, False),
        "rope.factor": (32.0, 8.0),
    }
    assert [(row.id, row.a, row.b) for row in found.components] == [("output", 0, 128_256 * 2_048)]
    assert found.tensors.only_b == ("lm_head.weight",)
    assert not found.tensors.only_a
    assert not found.tensors.shape
    assert found.totals["b"] - found.totals["a"] == 128_256 * 2_048


def test_the_other_way_round(graph_of: Callable[[str], Graph]) -> None:
    found = diff(graph_of("llama-guard-3-1b"), graph_of("llama3.2-1b"))
    assert found.tensors.only_a == ("lm_head.weight",)
    assert found.tensors.only_b == ()


@pytest.mark.parametrize(
    ("change", "dims"),
    [
        ({"rope_theta": 500000.0}, {"rope_theta"}),
        ({"rms_norm_eps": 1e-6}, {"norm_eps"}),
        ({"torch_dtype": "float16"}, {"dtype"}),
        ({"max_position_embeddings": 128}, {"context_length"}),
    ],
)
def test_what_changes_no_tensor_is_said_all_the_same(
    change: dict[str, Any], dims: set[str], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    found = diff(bound(small), bound(small | change))
    assert {dim.name for dim in found.dims} == dims
    assert found.same_tensors
    assert found.differs


def test_biases_are_tensors_of_one_side(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    found = diff(bound(small), bound(small | {"attention_bias": True}))
    assert {dim.name for dim in found.dims} == {"attention_bias"}
    assert [(row.id, row.a, row.b) for row in found.components] == [
        ("attention.bq", None, 3 * 48),
        ("attention.bk", None, 3 * 24),
        ("attention.bv", None, 3 * 24),
        ("attention.bo", None, 3 * 48),
    ]
    assert found.tensors.only_a == ()
    assert set(found.tensors.only_b) == {
        f"model.layers.{layer}.self_attn.{matrix}_proj.bias" for layer in range(3) for matrix in "qkvo"
    }


def test_stating_a_default_is_no_difference(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    """head_dim 4 is 48 / 12, and 6 key and value heads are what the file says either way."""
    assert not diff(bound(small), bound(small | {"head_dim": 4})).differs
