"""What differs between two models, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atlas.analyse.diff import diff
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library, builtin_folder


def test_a_model_and_itself(graph_of: Callable[[str], Graph]) -> None:
    found = diff(graph_of("llama3.1-8b"), graph_of("llama3.1-8b"))
    assert (found.dims, found.settings, found.components) == ((), (), ())
    assert (found.tensors.only_a, found.tensors.only_b, found.tensors.shape) == ((), (), ())
    assert found.same_tensors
    assert not found.differs


def test_llama_3_and_3_1_differ_in_no_tensor(graph_of: Callable[[str], Graph]) -> None:
    """A longer context by scaled positions: Meta's scaling has factor 8, bounds 1 and 4, and 8,192 positions before."""
    found = diff(graph_of("llama3-8b"), graph_of("llama3.1-8b"))
    assert {dim.name: (dim.a, dim.b) for dim in found.dims} == {"context_length": (8_192, 131_072)}
    assert {row.name: (row.a, row.b) for row in found.settings} == {
        "rope.rope_type": (None, "llama3"),
        "rope.factor": (None, 8.0),
        "rope.low_freq_factor": (None, 1.0),
        "rope.high_freq_factor": (None, 4.0),
        "rope.original_max_position_embeddings": (None, 8_192),
    }
    assert all(row.described for row in found.settings)
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
    assert found.dims == ()
    assert {row.name: (row.a, row.b) for row in found.settings} == {
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
    ("change", "row"),
    [
        ({"rope_theta": 500000.0}, ("rope_theta", 10000.0, 500000.0)),
        ({"rms_norm_eps": 1e-6}, ("norm_eps", 1e-5, 1e-6)),
        ({"torch_dtype": "float16"}, ("dtype", "BF16", "F16")),
    ],
)
def test_a_described_setting_is_a_row(
    change: dict[str, Any], row: tuple[Any, ...], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    base = small | {"rope_theta": 10000.0, "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16"}
    found = diff(bound(base), bound(base | change))
    assert [(each.name, each.a, each.b) for each in found.settings] == [row]
    assert [each.described for each in found.settings] == [True]
    assert found.same_tensors
    assert found.differs


def test_the_context_length_is_a_dimension(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    found = diff(bound(small), bound(small | {"max_position_embeddings": 128}))
    assert [(dim.name, dim.b) for dim in found.dims] == [("context_length", 128)]
    assert found.settings == ()
    assert found.differs


# A setting that the description does not cover -> its rows: (name, value without it, value with it).
UNDESCRIBED: list[tuple[dict[str, Any], list[tuple[str, Any, Any]]]] = [
    ({"sliding_window": 32}, [("sliding_window", None, 32)]),
    ({"hidden_act": "gelu_10"}, [("hidden_act", "silu", "gelu_10")]),
    ({"logit_scale": 0.0625}, [("logit_scale", 1, 0.0625)]),
    ({"partial_rotary_factor": 0.5}, [("partial_rotary_factor", 1, 0.5)]),
    (
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}},
        [("partial_rotary_factor", 1, 0.5)],
    ),
    (
        {"quantization_config": {"quant_method": "gptq", "bits": 4, "modules": {"skip": ["lm_head"]}}},
        [
            ("quantization_config.quant_method", None, "gptq"),
            ("quantization_config.bits", None, 4),
            ("quantization_config.modules.skip", None, ("lm_head",)),
        ],
    ),
    (
        {"quantization": {"bits": 4, "group_size": 64}},
        [("quantization.bits", None, 4), ("quantization.group_size", None, 64)],
    ),
    (
        {"layer_types": ["sliding_attention", "full_attention", "full_attention"]},
        [
            (
                "layer_types",
                "full_attention",
                ("sliding_attention", "full_attention", "full_attention"),
            )
        ],
    ),
    (
        {"rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}},
        [("rope.mrope_section", None, (16, 24, 24))],
    ),
    (
        {"rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0}}},
        [
            ("rope.rope_type", None, "default"),
            ("rope.full_attention.rope_type", None, "default"),
            ("rope.full_attention.rope_theta", None, 1000000.0),
        ],
    ),
    ({"final_logit_softcapping": 30.0}, [("final_logit_softcapping", None, 30.0)]),
    ({"torch_dtype": "float9"}, [("torch_dtype", None, "float9")]),
    (
        {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
        [("rope.rope_type", None, "llama3"), ("rope.factor", None, 8.0)],
    ),
]


@pytest.mark.parametrize(
    ("change", "rows"),
    UNDESCRIBED,
    ids=[str(next(iter(change))) + f"-{i}" for i, (change, _) in enumerate(UNDESCRIBED)],
)
def test_a_setting_that_is_not_described_is_a_row_with_both_values(
    change: dict[str, Any],
    rows: list[tuple[str, Any, Any]],
    bound: Callable[..., Graph],
    small: dict[str, Any],
) -> None:
    base = {key: value for key, value in small.items() if key not in change}
    found = diff(bound(base), bound(base | change))
    assert [(row.name, row.a, row.b) for row in found.settings] == rows
    assert not any(row.described for row in found.settings)
    assert (found.dims, found.components, found.same_tensors) == ((), (), True)
    assert found.differs
    back = diff(bound(base | change), bound(base))
    assert [(row.name, row.b, row.a) for row in back.settings] == rows
    assert not diff(bound(base | change), bound(base | change)).differs


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"hidden_act": "silu"}),
        ({"hidden_act": "swish"}, {}),
        ({}, {"sliding_window": None, "use_sliding_window": False}),
        ({}, {"partial_rotary_factor": 1.0, "logit_scale": 1}),
        ({}, {"rope_scaling": {"rope_type": "default"}}),
        ({}, {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.0}}),
        ({}, {"layer_types": ["full_attention"] * 3}),
        (
            {"rope_scaling": {"type": "linear", "factor": 4}},
            {"rope_parameters": {"rope_type": "linear", "factor": 4.0}},
        ),
        ({"bos_token_id": 1, "transformers_version": "4.43.0"}, {"bos_token_id": 2}),
    ],
)
def test_two_spellings_of_one_setting_are_no_difference(
    a: dict[str, Any], b: dict[str, Any], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    base = {key: value for key, value in small.items() if key != "hidden_act"}
    assert diff(bound(base | a), bound(base | b)).settings == ()


def test_quantised_weights_that_only_the_files_show_are_a_row(
    tmp_path: Path, small: dict[str, Any], library: Library
) -> None:
    """The same configuration twice; next to one of them a safetensors file whose matrix is F8."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(small))
    header = json.dumps({"w": {"dtype": "F8_E4M3", "shape": [2, 2], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "b" / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
    one, other = (bind(from_path(tmp_path / name, library), library) for name in ("a", "b"))
    found = diff(one, other)
    assert [(row.name, row.a, row.described) for row in found.settings] == [("quantisation", None, False)]
    assert "F8_E4M3" in found.settings[0].b


def test_one_setting_of_a_quantisation_is_one_row(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    one = small | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
    other = small | {"quantization_config": {"quant_method": "gptq", "bits": 8, "group_size": 128}}
    found = diff(bound(one), bound(other))
    assert [(row.name, row.a, row.b) for row in found.settings] == [("quantization_config.bits", 4, 8)]


def test_true_is_not_one_and_nan_is_printed(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    found = diff(bound(small | {"odd": 1}), bound(small | {"odd": True}))
    assert [(row.name, row.a, row.b) for row in found.settings] == [("odd", 1, True)]
    found = diff(bound(small), bound(small | {"odd": float("nan"), "more": [float("inf"), 1]}))
    assert {row.name: row.b for row in found.settings} == {"odd": "nan", "more": ("inf", 1)}


def test_a_value_nested_ever_deeper_is_one_text(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    deep: dict[str, Any] = {"end": 1}
    for _ in range(5_000):
        deep = {"x": deep}
    found = diff(bound(small), bound(small | {"odd": deep, "list": [[1], {"a": 2}]}))
    values = {row.name: row.b for row in found.settings}
    assert values["list"] == '[[1], {"a": 2}]'
    assert [name for name in values if name.startswith("odd")] == ["odd.x.x.x"]


def test_a_number_with_a_default_shows_the_value_of_the_configuration(
    overlay: Callable[..., Library], small: dict[str, Any]
) -> None:
    """Of an architecture with a number's default: 50 unless the configuration states another."""
    text = (builtin_folder() / "architectures" / "llama.toml").read_text(encoding="utf-8")
    text = text.replace('like  = "decoder"', 'like  = "decoder"\nnumbers = { softcap = 50.0 }', 1)
    text = text.replace("[configs.llama.used]", '[configs.llama.used]\nattn_softcap = "softcap"')
    library = overlay({"architectures/llama.toml": text})

    def made(settings: dict[str, Any]) -> Graph:
        return bind(config.describe(settings, library, id="test"), library)

    found = diff(made(small), made(small | {"attn_softcap": 30.0}))
    assert [(row.name, row.a, row.b, row.described) for row in found.settings] == [
        ("softcap", 50.0, 30.0, True)
    ]


@pytest.mark.parametrize(
    ("rope", "rows"),
    [
        ({"type": "linear", "factor": 4.0}, {"rope_type": "linear", "factor": 4.0}),
        ({"rope_type": "dynamic", "factor": 2.0}, {"rope_type": "dynamic", "factor": 2.0}),
        (
            {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32},
            {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32},
        ),
    ],
)
def test_forms_of_rope_are_described(
    rope: dict[str, Any], rows: dict[str, Any], bound: Callable[..., Graph], small: dict[str, Any]
) -> None:
    """Beside what is stated there may be the context that the form refers to, which the configuration states elsewhere."""
    found = diff(bound(small), bound(small | {"rope_scaling": rope})).settings
    stated = {row.name: row.b for row in found if not row.name.endswith("max_position_embeddings")}
    assert stated == {f"rope.{name}": value for name, value in rows.items()}
    assert all(row.described and row.a is None for row in found)


def test_rope_of_each_kind_of_layer_is_a_row(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    graph = bound(small)
    forms = {"sliding_attention": {"rope_type": "linear", "factor": 8.0}}
    other = replace(graph, model=replace(graph.model, ropes=forms))
    assert [(row.name, row.a, row.b) for row in diff(graph, other).settings] == [
        ("rope.sliding_attention.rope_type", None, "linear"),
        ("rope.sliding_attention.factor", None, 8.0),
    ]


def test_activations_are_described(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    (row,) = diff(bound(small), bound(small | {"hidden_act": "gelu"})).settings
    assert (row.name, row.a, row.b, row.described) == ("act", "silu", "gelu", True)


def test_biases_are_tensors_of_one_side(bound: Callable[..., Graph], small: dict[str, Any]) -> None:
    found = diff(bound(small), bound(small | {"attention_bias": True}))
    assert found.dims == ()
    assert [(row.name, row.a, row.b, row.described) for row in found.settings] == [
        ("attention_bias", False, True, True),
        ("attention_out_bias", False, True, True),
    ]
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
    """head_dim 4 is 48 / 12, and 6 key and value heads are stated in both."""
    assert not diff(bound(small), bound(small | {"head_dim": 4})).differs
