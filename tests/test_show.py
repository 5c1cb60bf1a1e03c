"""`atlas show`: a model's facts against published figures and arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atlas.analyse.show import ModelFacts, facts
from atlas.graph.graph import Graph
from atlas.spec.library import Library


def test_llama_3_1_8b(graph_of: Callable[[str], Graph], library: Library) -> None:
    """Sizes as in its published config.json; KV cache: 32 layers × 2 × 8 heads × 128 × 2 bytes."""
    found = facts(graph_of("llama3.1-8b"), library)
    assert found.dims == {
        "n_layers": 32,
        "dim": 4_096,
        "n_heads": 32,
        "n_kv_heads": 8,
        "head_dim": 128,
        "ffn_dim": 14_336,
        "vocab_size": 128_256,
    }
    assert found.context_length == 131_072
    assert found.rope == {
        "rope_theta": 500_000.0,
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8_192,
    }
    assert (found.norm_eps, found.dtype, found.quantisation, found.tied) == (1e-5, "BF16", None, False)
    assert (found.total_parameters, found.active_parameters) == (8_030_261_248, 8_030_261_248)
    assert found.weight_bytes == 2 * 8_030_261_248
    assert found.kv_bytes_per_token == 32 * 2 * 8 * 128 * 2
    assert (found.conflicts, found.not_described) == ((), ())
    assert (found.family, found.hub_id) == ("llama3.1", "meta-llama/Llama-3.1-8B")


def test_a_tied_model_with_conflicts(graph_of: Callable[[str], Graph], library: Library) -> None:
    found = facts(graph_of("llama3.2-1b"), library)
    assert found.tied
    assert {conflict.field for conflict in found.conflicts} == {"tie_word_embeddings", "rope_scaling.factor"}
    assert found.kv_bytes_per_token == 16 * 2 * 8 * 64 * 2
    assert found.rope["factor"] == 32.0


def of(settings: dict[str, Any], bound: Callable[..., Graph], library: Library) -> ModelFacts:
    return facts(bound(settings), library)


def test_a_model_without_scaling_names_the_default(
    bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    assert of(small, bound, library).rope == {"rope_theta": 10_000.0, "rope_type": "default"}


def test_settings_that_are_not_described_are_named_with_their_values(
    bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    change = {"sliding_window": 32, "rope_scaling": {"type": "linear", "factor": 4.0}, "logit_scale": 0.5}
    found = of(small | change, bound, library)
    assert found.not_described == ("sliding_window = 32", "logit_scale = 0.5")
    assert found.rope == {"rope_theta": 10_000.0, "rope_type": "linear", "factor": 4.0}


def test_quantised_weights_have_no_size_here(
    bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    found = of(small | {"quantization_config": {"quant_method": "gptq", "bits": 4}}, bound, library)
    assert (found.quantisation, found.weight_bytes) == ("gptq", None)


@pytest.mark.parametrize(
    ("dtype", "width"), [("float32", 4), ("float16", 2), ("bfloat16", 2), ("float8_e4m3fn", 2)]
)
def test_the_kv_cache_has_the_stored_dtype_if_an_engine_would_keep_it(
    dtype: str, width: int, bound: Callable[..., Graph], small: dict[str, Any], library: Library
) -> None:
    """3 layers × keys and values × 6 heads × 4 (cli.md: F32, F16 or BF16, else BF16)."""
    found = of(small | {"torch_dtype": dtype}, bound, library)
    assert found.kv_bytes_per_token == 3 * 2 * 6 * 4 * width
