"""Configurations as they are published: keys that disagree, other heads, absent defaults, and quantised weights.

Counts of heads are arithmetic on the small model of `conftest`: 100 tokens, 48 wide. What transformers reads of two keys
that disagree is asked of transformers itself.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atlas.analyse import counts, parameters
from atlas.errors import ConfigError, NotDescribed
from atlas.graph import tensors
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.model import messages, require_described
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library

Bound = Callable[..., Graph]
Write = Callable[..., Path]

LAYER = 2 * 48 + 2 * 48 * 48 + 2 * 24 * 48 + 3 * 80 * 48
BASE = 100 * 48 + 48 + 3 * LAYER  # without an output matrix
TOTAL = BASE + 100 * 48

PARAMS = {"dim": 48, "n_layers": 3, "n_heads": 12, "n_kv_heads": 6, "vocab_size": 100, "multiple_of": 16}


def refused(graph: Graph) -> set[str]:
    """The commands that refuse."""
    found = set()
    for command in ("trace", "explain", "memory", "flops", "verify", "run"):
        try:
            require_described(graph.model, command)
        except NotDescribed:
            found.add(command)
    return found


# ---------------------------------------------------------------- two keys for one thing


def test_the_context_of_transformers_is_used(bound: Bound, small: dict[str, Any]) -> None:
    """transformers never reads max_sequence_length of a Llama."""
    for order in (1, -1):
        settings = dict(list((small | {"max_sequence_length": 16384}).items())[::order])
        graph = bound(settings)
        assert graph.model.context_length == 64
        assert refused(graph) == set()
        (warning,) = graph.model.warnings
        assert warning.endswith(
            "the keys max_position_embeddings and max_sequence_length disagree: 64 and 16384; "
            "max_position_embeddings is used"
        )


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
@pytest.mark.parametrize("order", [1, -1])
def test_theta_twice(key: str, order: int, bound: Bound, small: dict[str, Any]) -> None:
    settings = small | {"rope_theta": 10000.0, key: {"rope_type": "default", "rope_theta": 500000.0}}
    graph = bound(dict(list(settings.items())[::order]))
    assert parameters.total(graph) == TOTAL
    assert refused(graph) == {"explain", "run"}
    assert graph.model.numbers["rope_theta"] == _transformers(settings).rope_parameters["rope_theta"]
    (warning,) = graph.model.warnings
    assert f"the keys {key}.rope_theta and rope_theta disagree: 500000.0 and 10000.0" in warning


def test_the_same_theta_twice_is_no_fault(bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small | {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}})
    assert (graph.model.warnings, graph.model.gaps) == ((), ())


@pytest.mark.parametrize(
    ("new", "old", "affected"),
    [("float16", "bfloat16", False), ("float32", "bfloat16", True), ("bfloat16", "bfloat16", False)],
)
@pytest.mark.parametrize("order", [1, -1])
def test_two_dtypes(
    new: str, old: str, affected: bool, order: int, bound: Bound, small: dict[str, Any], library: Library
) -> None:
    """As in transformers, `dtype` takes precedence; bytes are withheld where the two have other widths."""
    settings = small | {"dtype": new, "torch_dtype": old}
    graph = bound(dict(list(settings.items())[::order]))
    assert _transformers(settings).dtype == _torch_dtype(new)
    assert graph.model.dtype == {"float16": "F16", "float32": "F32", "bfloat16": "BF16"}[new]
    assert len(graph.model.warnings) == (new != old)
    assert (counts.count(graph, library).weight_bytes is None) == affected


def _transformers(settings: dict[str, Any]) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.LlamaConfig.from_dict(json.loads(json.dumps(settings)))


def _torch_dtype(name: str) -> Any:
    return getattr(pytest.importorskip("torch"), name)


# ---------------------------------------------------------------- RoPE


@pytest.mark.parametrize("field", ["factor", "original_max_position_embeddings", "low_freq_factor"])
def test_llama3_scaling_without_a_parameter_is_counted(
    field: str, bound: Bound, small: dict[str, Any]
) -> None:
    form = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    del form[field]
    graph = bound(small | {"rope_scaling": form})
    assert parameters.total(graph) == TOTAL
    assert refused(graph) == {"explain", "run"}
    with pytest.raises(NotDescribed, match=rf"rope_scaling\.{field} is missing"):
        require_described(graph.model, "run")
    assert any(f"rope_scaling.{field} is missing" in text for text in graph.model.warnings)


def test_rope_scaling_false_is_null(bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small | {"rope_scaling": False})
    assert (graph.model.rope, graph.model.gaps) == ({}, ())
    assert graph.model.warnings == (
        "a test's configuration: rope_scaling is false; it is read as null, no scaling",
    )


@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_partial_rotation_inside_the_rope_table(key: str, bound: Bound, small: dict[str, Any]) -> None:
    inside = bound(small | {key: {"rope_type": "default", "partial_rotary_factor": 0.5}})
    outside = bound(small | {"partial_rotary_factor": 0.5})
    assert inside.model.gaps == outside.model.gaps
    assert refused(inside) == {"trace", "explain", "run"}
    whole = bound(small | {key: {"rope_type": "default", "partial_rotary_factor": 1.0}})
    assert (whole.model.gaps, whole.model.unknown) == ((), ())


def test_other_fields_of_the_rope_table_are_unknown(bound: Bound, small: dict[str, Any]) -> None:
    form = {"rope_type": "default", "spin": [16, 24, 24]}
    graph = bound(small | {"rope_scaling": form})
    assert [each.key for each in graph.model.unknown] == ["rope_scaling.spin"]
    assert "rope_scaling.spin is unknown" in messages(graph.model)[0]


# ---------------------------------------------------------------- heads


@pytest.mark.parametrize("kind", ["llama", "mistral"])
@pytest.mark.parametrize(
    ("change", "head"),
    [
        ({}, 2 * 48),  # PreTrainedConfig's default: two labels
        ({"num_labels": 1}, 48),
        ({"id2label": {"0": "A", "1": "B", "2": "C"}}, 3 * 48),
        ({"id2label": {"0": "A"}, "num_labels": 1}, 48),
        ({"tie_word_embeddings": True}, 2 * 48),
    ],
)
def test_a_sequence_classifier(
    kind: str, change: dict[str, Any], head: int, bound: Bound, small: dict[str, Any]
) -> None:
    name = f"{kind.capitalize()}ForSequenceClassification"
    settings = small | {"model_type": kind, "architectures": [name], "sliding_window": None}
    graph = bound(settings | change)
    assert parameters.total(graph) == BASE + head
    names = {tensor.name: tensor.shape for tensor in tensors.expected(graph, "hf")}
    assert names["score.weight"] == (head // 48, 48)
    assert "lm_head.weight" not in names
    assert "model.norm.weight" in names
    assert refused(graph) == {"run"}


@pytest.mark.parametrize("change", [{}, {"tie_word_embeddings": True}, {"num_labels": 5}])
def test_a_base_model_has_no_head(change: dict[str, Any], bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small | {"architectures": ["LlamaModel"]} | change)
    assert parameters.total(graph) == parameters.logical(graph) == BASE
    names = [tensor.name for tensor in tensors.expected(graph, "hf")]
    assert names[0] == "embed_tokens.weight"
    assert "norm.weight" in names
    assert not any(name.startswith(("model.", "lm_head", "score")) for name in names)
    assert "n_labels" not in graph.dims
    assert refused(graph) == {"run"}


@pytest.mark.parametrize("name", ["LlamaModel", "LlamaForSequenceClassification", "LlamaForCausalLM"])
def test_names_and_shapes_are_those_of_transformers(name: str, bound: Bound, small: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    settings = small | {"architectures": [name], "num_labels": 3}
    with torch.device("meta"):
        model = getattr(transformers, name)(transformers.LlamaConfig(**settings))
    theirs = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    ours = {tensor.name: tensor.shape for tensor in tensors.expected(bound(settings), "hf")}
    assert ours == theirs


def test_labels_that_disagree_are_refused(bound: Bound, small: dict[str, Any]) -> None:
    settings = {
        "architectures": ["LlamaForSequenceClassification"],
        "num_labels": 4,
        "id2label": {"0": "A"},
    }
    with pytest.raises(ConfigError, match="id2label and num_labels disagree: 1 and 4"):
        bound(small | settings)


# ---------------------------------------------------------------- defaults


@pytest.mark.parametrize(
    ("change", "theta", "notes"),
    [
        (
            {"norm_eps": 1e-5},
            10000.0,
            ["rope_theta is not stated; 10000 is used, the default of Llama 1's and Llama 2's code"],
        ),
        (
            {},
            10000.0,
            [
                "norm_eps is not stated; 1e-05 is used, the default of Llama 1's and Llama 2's code",
                "rope_theta is not stated; 10000 is used, the default of Llama 1's and Llama 2's code",
            ],
        ),
        (
            {"rope_theta": 500000.0},
            500000.0,
            ["norm_eps is not stated; 1e-05 is used, the default of Llama 3's code"],
        ),
        (
            {"norm_eps": 1e-5, "use_scaled_rope": True},
            500000.0,
            ["rope_theta is not stated; 500000 is used, the default of Llama 3's code"],
        ),
    ],
)
def test_defaults_of_meta_s_code(
    change: dict[str, Any], theta: float, notes: list[str], library: Library
) -> None:
    """Llama 1's and 2's precompute_freqs_cis has theta 10,000, Llama 3's ModelArgs 500,000; norm_eps is 1e-5 in all."""
    model = config.describe(PARAMS | change, library, id="p", file="params.json")
    assert model.numbers["rope_theta"] == theta
    assert list(model.notes) == notes


@pytest.mark.parametrize(("kind", "name"), [("llama", "LlamaConfig"), ("mistral", "MistralConfig")])
def test_defaults_of_transformers(kind: str, name: str, bound: Bound, small: dict[str, Any]) -> None:
    transformers = pytest.importorskip("transformers")
    theirs = getattr(transformers, name)()
    del small["rms_norm_eps"], small["rope_theta"]
    model = bound(small | {"model_type": kind, "sliding_window": None}).model
    assert model.numbers["norm_eps"] == theirs.rms_norm_eps
    assert model.numbers["rope_theta"] == theirs.rope_parameters["rope_theta"]
    assert len(model.notes) == 2
    assert all(note.endswith(f"the default of transformers' {name}") for note in model.notes)


# ---------------------------------------------------------------- quantised weights

QUANTISED = [
    ("quantization_config", {"quant_method": "gptq", "bits": 4}),
    ("quantization", {"group_size": 64, "bits": 4}),
    ("compression_config", {"format": "pack-quantized"}),
]


def held_back(graph: Graph, library: Library, words: str) -> None:
    found = counts.count(graph, library)
    assert found.total_parameters == TOTAL
    assert found.weight_bytes is None
    assert any("stored quantised" in note and words in note for note in found.notes)
    assert {"verify", "run"} <= refused(graph)
    assert graph.model.unknown == ()


@pytest.mark.parametrize(("key", "value"), QUANTISED)
def test_keys_that_declare_a_quantisation(
    key: str, value: Any, bound: Bound, small: dict[str, Any], library: Library
) -> None:
    held_back(bound(small | {key: value}), library, f"({key})")


@pytest.mark.parametrize("value", [None, {}, False])
@pytest.mark.parametrize("key", [key for key, _ in QUANTISED])
def test_empty_declarations(key: str, value: Any, bound: Bound, small: dict[str, Any]) -> None:
    assert bound(small | {key: value}).model.gaps == ()


def test_a_file_next_to_the_configuration(
    write_config: Write, small: dict[str, Any], library: Library
) -> None:
    from atlas.graph.binding import bind

    path = write_config(small)
    assert from_path(path.parent, library).gaps == ()
    (path.parent / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    for given in (path, path.parent):
        held_back(bind(from_path(given, library), library), library, "hf_quant_config.json")


@pytest.mark.parametrize(
    ("dtype", "width", "quantised"),
    [("F8_E4M3", 1, True), ("F8_E5M2", 1, True), ("U32", 4, True), ("BF16", 2, False), ("F32", 4, False)],
)
def test_stored_dtypes_without_a_declaration(
    dtype: str, width: int, quantised: bool, write_config: Write, small: dict[str, Any], library: Library
) -> None:
    folder = write_config(small).parent
    end = 6 * width
    header = {
        "w": {"dtype": dtype, "shape": [2, 3], "data_offsets": [0, end]},
        "norm": {"dtype": "BF16", "shape": [3], "data_offsets": [end, end + 6]},
    }
    raw = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(raw)) + raw + bytes(end + 6))
    gaps = from_path(folder, library).gaps
    assert len(gaps) == quantised
    if quantised:
        assert f"{dtype} in model.safetensors" in gaps[0].reason


def test_weights_that_cannot_be_read_are_left_to_verify(
    write_config: Write, small: dict[str, Any], library: Library
) -> None:
    folder = write_config(small).parent
    (folder / "model.safetensors").write_bytes(b"not a header")
    assert from_path(folder, library).gaps == ()


# ---------------------------------------------------------------- options that are numbers


def test_a_number_among_the_flags_takes_the_configuration_s_value(
    small: dict[str, Any], overlay: Callable[..., Library]
) -> None:
    from atlas.spec.library import builtin_folder

    file = "architectures/llama.toml"
    text = (builtin_folder() / file).read_text()
    text = text.replace('like  = "decoder"', 'like  = "decoder"\nflags = { gain = 1.0 }')
    text = text.replace("[configs.llama.used]\n", '[configs.llama.used]\nlogit_gain = "gain"\n')
    library = overlay({file: text})
    assert config.describe(small, library, id="m").flags["gain"] == 1.0
    model = config.describe(small | {"logit_gain": 0.25}, library, id="m")
    assert model.flags["gain"] == 0.25
    assert "gain" not in model.numbers
