"""A checkpoint's own configuration -> a model: every key is used, ignored, noted, warned of or refused, by name."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas.analyse import counts, parameters
from atlas.analyse.flops import flops
from atlas.analyse.memory import memory
from atlas.analyse.trace import trace
from atlas.errors import AtlasError, ConfigError, NotDescribed, SpecError
from atlas.graph.binding import bind
from atlas.graph.graph import Graph
from atlas.resolution import config
from atlas.resolution.model import messages, require_described
from atlas.resolution.resolve import from_path
from atlas.spec.config_tables import config_table
from atlas.spec.library import Library, builtin_folder

Write = Callable[..., Path]
Bound = Callable[..., Graph]

# The small model by hand: 3 layers, 48 wide, 12 heads of 4 and 6 for keys and values, 80 inside, 100 tokens.
LAYER = 2 * 48 + 2 * 48 * 48 + 2 * 24 * 48 + 3 * 80 * 48
TOTAL = 2 * 100 * 48 + 48 + 3 * LAYER

SCALED = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}

META = {
    "dim": 48,
    "n_layers": 3,
    "n_heads": 12,
    "n_kv_heads": 6,
    "vocab_size": 100,
    "multiple_of": 16,
    "norm_eps": 1e-6,
    "rope_theta": 10000.0,
}


def total(graph: Graph) -> int:
    return parameters.total(graph)


# ---------------------------------------------------------------- what is used


def test_every_dimension(bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small)
    assert {axis: size for axis, size in graph.dims.items() if axis in graph.model.dims} == {
        "dim": 48,
        "ffn_dim": 80,
        "n_layers": 3,
        "n_heads": 12,
        "n_kv_heads": 6,
        "vocab_size": 100,
    }
    assert (graph.dims["head_dim"], graph.dims["group"]) == (4, 2)
    assert graph.model.numbers == {"norm_eps": 1e-5, "rope_theta": 10000.0}
    assert graph.model.flags == {
        "tied": False,
        "attention_bias": False,
        "attention_out_bias": False,
        "mlp_bias": False,
        "act": "silu",
        "qk_norm": "off",
        "head": "language model",
    }
    assert (graph.model.context_length, graph.model.dtype, graph.model.rope) == (64, "BF16", {})
    assert graph.model.as_catalogued is None
    assert (graph.model.warnings, graph.model.notes, graph.model.gaps) == ((), (), ())
    assert total(graph) == TOTAL


@pytest.mark.parametrize("change", [{"num_key_value_heads": None}, {"num_key_value_heads": ...}])
def test_absent_and_null_key_and_value_heads_are_the_query_heads(
    change: dict[str, Any], bound: Bound, small: dict[str, Any]
) -> None:
    graph = bound({key: value for key, value in (small | change).items() if value is not ...})
    assert graph.dims["n_kv_heads"] == 12
    assert total(graph) == TOTAL + 3 * 2 * 24 * 48  # wk and wv twice as tall


@pytest.mark.parametrize("value", [None, 4])
def test_absent_and_null_head_dim_is_the_width_by_the_heads(
    value: int | None, bound: Bound, small: dict[str, Any]
) -> None:
    assert total(bound(small | {"head_dim": value})) == total(bound(small)) == TOTAL


def test_head_dim_is_taken_as_it_is_given(bound: Bound, small: dict[str, Any]) -> None:
    """10 wide where 48 / 12 would be 4: wq, wo are 120 and wk, wv 60 instead of 48 and 24."""
    graph = bound(small | {"head_dim": 10})
    assert total(graph) == TOTAL + 3 * (2 * (120 - 48) * 48 + 2 * (60 - 24) * 48)


def test_head_dim_frees_the_width_of_the_heads(bound: Bound, small: dict[str, Any]) -> None:
    assert bound(small | {"hidden_size": 50, "head_dim": 4}).dims["head_dim"] == 4


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"attention_bias": True}, 3 * (48 + 24 + 24 + 48)),
        ({"mlp_bias": True}, 3 * (80 + 80 + 48)),
        ({"attention_bias": True, "mlp_bias": True}, 3 * (48 + 24 + 24 + 48 + 80 + 80 + 48)),
        ({"tie_word_embeddings": True}, -100 * 48),
        ({"attention_bias": False, "mlp_bias": None, "tie_word_embeddings": None}, 0),
    ],
)
def test_switches(change: dict[str, Any], more: int, bound: Bound, small: dict[str, Any]) -> None:
    assert total(bound(small | change)) == TOTAL + more


@pytest.mark.parametrize(
    ("key", "name", "value"), [("rms_norm_eps", "norm_eps", 1e-6), ("rope_theta", "rope_theta", 10000.0)]
)
def test_absent_numbers_have_transformers_defaults_and_a_note(
    key: str, name: str, value: float, bound: Bound, small: dict[str, Any]
) -> None:
    del small[key]
    model = bound(small).model
    assert model.numbers[name] == value
    (note,) = model.notes
    assert note.startswith(f"{key} is not stated; ")


@pytest.mark.parametrize("key", ["torch_dtype", "dtype"])
@pytest.mark.parametrize(
    ("value", "code"),
    [("bfloat16", "BF16"), ("float16", "F16"), ("float32", "F32"), ("torch.float16", "F16")],
)
def test_dtypes(key: str, value: str, code: str, bound: Bound, small: dict[str, Any]) -> None:
    del small["torch_dtype"]
    model = bound(small | {key: value}).model
    assert (model.dtype, model.dtype_stated) == (code, True)


def test_without_a_dtype_one_is_assumed_and_said(
    bound: Bound, small: dict[str, Any], library: Library
) -> None:
    del small["torch_dtype"]
    graph = bound(small)
    assert (graph.model.dtype, graph.model.dtype_stated) == ("BF16", False)
    assert any("an assumption" in note for note in counts.count(graph, library).notes)


def test_a_dtype_that_is_none_is_a_warning(bound: Bound, small: dict[str, Any]) -> None:
    model = bound(small | {"torch_dtype": "auto"}).model
    assert model.warnings == ('a test\'s configuration: torch_dtype is "auto", which is not a known dtype',)
    assert not model.dtype_stated


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"},
        {"max_sequence_length": 128},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
        {"rope_scaling": SCALED, "rope_parameters": SCALED | {"factor": 32.0}},
    ],
)
def test_two_keys_that_disagree(change: dict[str, Any], bound: Bound, small: dict[str, Any]) -> None:
    """No count depends on which of the two is right: parameters are counted, with a warning that names both."""
    graph = bound(small | change)
    (warning,) = graph.model.warnings
    assert "disagree" in warning
    assert all(key in warning for key in change)
    assert total(graph) == TOTAL


def test_two_keys_that_agree(bound: Bound, small: dict[str, Any]) -> None:
    model = bound(small | {"dtype": "bfloat16", "max_sequence_length": 64}).model
    assert (model.dtype, model.context_length, model.warnings) == ("BF16", 64, ())


# ---------------------------------------------------------------- scaled positions


@pytest.mark.parametrize("word", ["type", "rope_type"])
@pytest.mark.parametrize("key", ["rope_scaling", "rope_parameters"])
def test_scaling_however_it_is_written(word: str, key: str, bound: Bound, small: dict[str, Any]) -> None:
    form = {word if name == "rope_type" else name: value for name, value in SCALED.items()}
    model = bound(small | {key: form}).model
    assert model.rope == SCALED
    assert (model.gaps, model.warnings) == ((), ())


def test_theta_within_the_scaling(bound: Bound, small: dict[str, Any]) -> None:
    del small["rope_theta"]
    model = bound(small | {"rope_parameters": SCALED | {"rope_theta": 500000.0}}).model
    assert model.numbers["rope_theta"] == 500000.0
    assert model.notes == ()
    model = bound(small | {"rope_parameters": {"rope_type": "default", "rope_theta": 2e4}}).model
    assert (model.numbers["rope_theta"], model.rope) == (2e4, {})


@pytest.mark.parametrize("form", [None, {}, {"rope_type": "default"}, {"type": "default", "factor": 2.0}])
def test_no_scaling(form: dict[str, Any] | None, bound: Bound, small: dict[str, Any]) -> None:
    model = bound(small | {"rope_scaling": form}).model
    assert (model.rope, model.gaps) == ({}, ())


@pytest.mark.parametrize("form", ["ntk", "axial"])
def test_other_forms_are_counted_with_a_note(
    form: str, bound: Bound, small: dict[str, Any], library: Library
) -> None:
    graph = bound(small | {"rope_scaling": {"type": form, "factor": 2.0}})
    found = counts.count(graph, library)
    assert found.total_parameters == TOTAL
    assert any(f"in the form '{form}'" in note for note in found.notes)
    with pytest.raises(NotDescribed, match=f"in the form '{form}' .*`atlas trace`"):
        trace(graph)
    assert memory(graph).kv_bytes_per_token == 3 * 2 * 6 * 4 * 2
    assert flops(graph).total_flops > 0


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ("linear", 'rope_scaling is "linear", expected a table or null'),
        ([1], "expected a table or null"),
        ({"rope_type": "llama3"}, "rope_scaling.factor is missing, expected a positive number"),
        (SCALED | {"factor": None}, "rope_scaling.factor is missing"),
        (SCALED | {"factor": 0}, "rope_scaling.factor is 0, expected a positive number"),
        (SCALED | {"factor": -8.0}, "rope_scaling.factor is -8.0, expected a positive number"),
        (SCALED | {"factor": True}, "rope_scaling.factor is true, expected a positive number"),
        (SCALED | {"factor": "8"}, 'rope_scaling.factor is "8", expected a positive number'),
        (SCALED | {"low_freq_factor": math.nan}, "rope_scaling.low_freq_factor is NaN"),
        (SCALED | {"high_freq_factor": math.inf}, "rope_scaling.high_freq_factor is Infinity"),
        (SCALED | {"factor": 10**400}, "rope_scaling.factor is 1000"),
        (SCALED | {"rope_theta": 10**400}, "rope_scaling.rope_theta is 1000"),
        (SCALED | {"rope_theta": 0}, "rope_scaling.rope_theta is 0, expected a positive number"),
        (SCALED | {"type": "linear"}, "rope_scaling states two types, linear and llama3"),
    ],
)
def test_scaling_that_cannot_be_understood(
    form: Any, words: str, bound: Bound, small: dict[str, Any]
) -> None:
    """No shape depends on it: parameters are counted with a warning, and a run is refused by the key's name."""
    graph = bound(small | {"rope_scaling": form})
    assert total(graph) == TOTAL
    assert any(words in warning for warning in graph.model.warnings)
    assert flops(graph).total_flops > 0
    with pytest.raises(NotDescribed) as caught:
        require_described(graph.model, "run")
    assert words in caught.value.message


def test_transformers_5_and_4_describe_the_same_model(shared: Path, library: Library) -> None:
    folder = shared / "checkpoints" / "tiny_scaled" / "hf"
    new = from_path(folder / "config.json", library)
    old = from_path(folder / "config.v4_style.json", library)
    for field in (
        "dims",
        "numbers",
        "flags",
        "rope",
        "dtype",
        "dtype_stated",
        "context_length",
        "gaps",
        "notes",
    ):
        assert getattr(new, field) == getattr(old, field), field
    assert (new.warnings, old.warnings) == ((), ())
    assert new.rope == SCALED
    assert new.numbers["rope_theta"] == 500000.0
    assert (new.dims["n_heads"], new.dims["head_dim"], new.dtype) == (4, 16, "F32")


def test_the_two_layouts_of_one_checkpoint_are_one_model(shared: Path, library: Library) -> None:
    for checkpoint in ("tiny_scaled", "stories260k"):
        hub = bind(from_path(shared / "checkpoints" / checkpoint / "hf", library), library)
        meta = bind(from_path(shared / "checkpoints" / checkpoint / "meta", library), library)
        assert hub.dims == meta.dims, checkpoint
        assert hub.model.rope == meta.model.rope, checkpoint
        assert hub.model.numbers["rope_theta"] == meta.model.numbers["rope_theta"], checkpoint


# ---------------------------------------------------------------- ignored, unknown, noted


def test_ignored_keys_are_ignored_by_name(bound: Bound, small: dict[str, Any], library: Library) -> None:
    ignored = config_table(library.architecture("llama"), "llama").ignored
    graph = bound(small | dict.fromkeys(set(ignored) - {"model_type"}, "anything"))
    assert (total(graph), graph.model.warnings) == (TOTAL, ())


def test_unknown_keys_are_warned_of_by_name(bound: Bound, small: dict[str, Any]) -> None:
    model = bound(small | {"alibi": True, "n_loops": 3, "harmless": None}).model
    assert model.warnings == ()
    assert [(each.key, each.value) for each in model.unknown] == [("alibi", True), ("n_loops", 3)]
    assert tuple(messages(model)) == (
        "a test's configuration: the key alibi is unknown and was not used",
        "a test's configuration: the key n_loops is unknown and was not used",
    )


GAPS: list[tuple[str, dict[str, Any], str, set[str]]] = [
    ("llama", {"hidden_act": "xielu"}, 'hidden_act is "xielu"', {"trace", "explain", "run"}),
    ("llama", {"sliding_window": 16}, "sliding window of 16", {"trace", "explain", "memory", "run"}),
    (
        "llama",
        {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        "stored quantised",
        {"trace", "verify", "run"},
    ),
    (
        "llama",
        {"rope_scaling": {"type": "ntk", "factor": 2.0}},
        "form 'ntk'",
        {"trace", "explain", "run"},
    ),
    ("llama", {"partial_rotary_factor": 0.5}, "only 0.5 of each head", {"trace", "explain", "run"}),
    ("llama", {"logit_scale": 0.1}, "multiplied by 0.1", {"trace", "explain", "run"}),
    ("llama", {"use_sliding_window": True}, "sliding window", {"trace", "explain", "memory", "flops", "run"}),
]


@pytest.mark.parametrize(("kind", "change", "words", "affects"), GAPS)
def test_what_changes_the_computation_only(
    kind: str,
    change: dict[str, Any],
    words: str,
    affects: set[str],
    bound: Bound,
    small: dict[str, Any],
    library: Library,
) -> None:
    """Counted with a note, and refused by the commands whose answer depends on it, and by no other."""
    graph = bound(small | {"model_type": kind} | change)
    found = counts.count(graph, library)
    assert found.total_parameters == TOTAL
    assert graph.model.warnings == ()
    assert any(words in f"{note[0].lower()}{note[1:]}" for note in found.notes)
    answers: dict[str, Callable[..., Any]] = {"trace": trace, "memory": memory, "flops": flops}

    def answer(command: str) -> None:
        if command in answers:
            answers[command](graph)
        else:
            require_described(graph.model, command)

    for command in ("trace", "memory", "flops", "explain", "verify", "run"):
        if command in affects:
            with pytest.raises(NotDescribed) as caught:
                answer(command)
            assert words in caught.value.message
            assert f"`atlas {command}`" in caught.value.message
            assert "atlas params" in caught.value.hint
        else:
            answer(command)


@pytest.mark.parametrize(
    "change",
    [
        {"hidden_act": "silu"},
        {"hidden_act": "swish"},
        {"sliding_window": None},
        {"quantization_config": None},
        {"partial_rotary_factor": 1},
        {"partial_rotary_factor": 1.0},
        {"use_sliding_window": False},
        {"logit_scale": 1.0},
    ],
)
def test_values_that_are_described_leave_no_note(
    change: dict[str, Any], bound: Bound, small: dict[str, Any]
) -> None:
    model = bound(small | change).model
    assert (model.gaps, model.warnings, model.notes) == ((), (), ())


def test_several_gaps_are_all_said(bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small | {"hidden_act": "xielu", "sliding_window": 32})
    with pytest.raises(NotDescribed, match=r"sliding window of 32.*; .*xielu"):
        trace(graph)
    with pytest.raises(NotDescribed, match="sliding window of 32") as caught:
        memory(graph)
    assert "xielu" not in caught.value.message


def test_mistral_without_a_window(bound: Bound, small: dict[str, Any]) -> None:
    graph = bound(small | {"model_type": "mistral", "sliding_window": None})
    assert total(graph) == TOTAL
    assert trace(graph).steps
    assert memory(graph).kv_bytes_per_token == 3 * 2 * 6 * 4 * 2


# ---------------------------------------------------------------- one table like another


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            'like  = "hub"',
            'like  = "hubb"',
            "configs.mistral: like = 'hubb': the architecture has no such table",
        ),
        ('like  = "hub"', 'like  = "mistral"', "configs.mistral: mistral extends mistral"),
        (
            'like  = "hub"',
            'like  = "other"\n[configs.other]\nlike = "mistral"\n[configs.mistral.agrees]',
            "configs.other: mistral extends other extends mistral",
        ),
    ],
)
def test_tables_like_nothing_or_themselves(
    old: str, new: str, words: str, small: dict[str, Any], overlay: Callable[..., Library]
) -> None:
    file = "architectures/mistral.toml"
    text = (builtin_folder() / file).read_text()
    assert text.count(old) == 1
    with pytest.raises(SpecError) as caught:
        config.describe(small | {"model_type": "mistral"}, overlay({file: text.replace(old, new)}), id="m")
    assert words in caught.value.message


def test_what_a_table_says_itself_comes_first(library: Library) -> None:
    """mistral is like the table of all, but for its window; everything else is as that table has it."""
    mistral = library.architecture("mistral")
    own, base = config_table(mistral, "mistral"), config_table(mistral, "hub")
    assert own.used == base.used | {"sliding_window": "window"}
    assert own.only == base.only
    assert list(own.classes) == [
        "MistralForCausalLM",
        "MistralModel",
        "MistralForSequenceClassification",
    ]
    assert own.computes == {key: rule for key, rule in base.computes.items() if key != "sliding_window"}
    assert own.ignored == base.ignored


def test_a_key_that_must_agree_with_others(small: dict[str, Any], overlay: Callable[..., Library]) -> None:
    file = "architectures/llama.toml"
    text = (builtin_folder() / file).read_text()
    added = '[configs.llama.agrees]\nattention_width = "n_heads * head_dim"\n\n[configs.llama.defaults]\n'
    library = overlay({file: text.replace("[configs.llama.defaults]\n", added)})
    heads, width = small["num_attention_heads"], small["hidden_size"]  # head_dim follows from the two
    assert not config.describe(small | {"attention_width": width}, library, id="m").warnings
    assert not config.describe(small | {"attention_width": None}, library, id="m").warnings
    with pytest.raises(ConfigError) as caught:
        config.describe(small | {"attention_width": width + 1}, library, id="m")
    spelled = f"num_attention_heads ({heads}) * head_dim ({width // heads})"
    assert caught.value.message == f"m: attention_width is {width + 1}, but {spelled} gives {width}"


# ---------------------------------------------------------------- refused by name


@pytest.mark.parametrize(
    ("family", "stated", "taken"),
    [
        ("llama", ["LlamaForCausalLM"], True),
        ("llama", ["LLaMAForCausalLM"], True),  # before transformers had the family
        ("llama", None, True),
        ("llama", [], True),
        ("mistral", ["MistralForCausalLM"], True),
        ("llama", ["LlamaForSequenceClassification"], True),
        ("llama", ["LlamaModel"], True),
        ("llama", ["LlamaForTokenClassification"], False),
        ("llama", ["LlamaForCausalLM", "LlamaModel"], False),
        ("llama", ["MistralForCausalLM"], False),
        ("mistral", ["LlamaForCausalLM"], False),
        ("llama", "LlamaForCausalLM", False),
        ("llama", {"a": 1}, False),
    ],
    ids=str,
)
def test_classes_with_another_head_are_refused(
    family: str, stated: object, taken: bool, small: dict[str, Any], library: Library
) -> None:
    settings = small | {"model_type": family, "architectures": stated}
    if family == "mistral":
        settings = {key: value for key, value in settings.items() if not key.endswith("_bias")}
    if taken:
        config.describe(settings, library, id="m")
        return
    with pytest.raises(ConfigError, match=r"architectures is .* changes the model's tensors"):
        config.describe(settings, library, id="m")


DIMENSIONS = {
    "hidden_size": "width of the residual stream",
    "num_hidden_layers": "layers",
    "num_attention_heads": "query heads",
    "intermediate_size": "width inside the feed-forward",
    "vocab_size": "rows of the token embedding",
}
META_DIMENSIONS = {
    "dim": "width of the residual stream",
    "n_layers": "layers",
    "n_heads": "query heads",
    "vocab_size": "rows of the token embedding",
}


@pytest.mark.parametrize("absent", [True, False])
@pytest.mark.parametrize(("key", "meaning"), DIMENSIONS.items())
def test_a_missing_dimension(
    key: str, meaning: str, absent: bool, bound: Bound, small: dict[str, Any]
) -> None:
    small[key] = None
    if absent:
        del small[key]
    with pytest.raises(ConfigError, match=f"a test's configuration: {key} is missing: {meaning}") as caught:
        bound(small)
    assert caught.value.hint


@pytest.mark.parametrize(("key", "meaning"), META_DIMENSIONS.items())
def test_a_missing_dimension_of_params(key: str, meaning: str, bound: Bound) -> None:
    with pytest.raises(ConfigError, match=f"{key} is missing: {meaning}"):
        bound({name: value for name, value in META.items() if name != key}, "params.json")


NO_SIZES: list[tuple[Any, str]] = [
    (0, "is 0, expected a positive integer"),
    (-5, "is -5, expected a positive integer"),
    (48.0, "is 48.0, expected a positive integer"),
    (48.5, "is 48.5, expected a positive integer"),
    ("48", 'is "48", expected a positive integer'),
    (True, "is true, expected a positive integer"),
    ([48], "is [48], expected a positive integer"),
    ({"a": 1}, 'is {"a": 1}, expected a positive integer'),
    (math.nan, "is NaN, expected a positive integer"),
    (math.inf, "is Infinity, expected a positive integer"),
    (2**48 + 1, "is 281474976710657, expected at most 281,474,976,710,656"),
    (10**4000, "expected at most 281,474,976,710,656"),
    (-(10**4000), "expected a positive integer"),
]


@pytest.mark.parametrize(("value", "words"), NO_SIZES)
@pytest.mark.parametrize("key", [*DIMENSIONS, "num_key_value_heads", "head_dim", "max_position_embeddings"])
def test_what_is_no_size(key: str, value: Any, words: str, bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(small | {key: value})
    assert caught.value.message.startswith(f"a test's configuration: {key} is ")
    assert words in caught.value.message
    assert len(caught.value.message) < 250


@pytest.mark.parametrize(("value", "words"), NO_SIZES)
@pytest.mark.parametrize("key", [*META_DIMENSIONS, "n_kv_heads", "max_seq_len"])
def test_what_is_no_size_in_params(key: str, value: Any, words: str, bound: Bound) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(META | {key: value}, "params.json")
    assert caught.value.message.startswith(f"a test's configuration: {key} is ")
    assert words in caught.value.message


@pytest.mark.parametrize("value", [0, -1e-5, "1e-5", True, math.nan, math.inf, [1e-5], {}, 10**400])
@pytest.mark.parametrize("key", ["rms_norm_eps", "rope_theta"])
def test_what_is_no_number(key: str, value: Any, bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{key} is .*, expected a positive number"):
        bound(small | {key: value})


@pytest.mark.parametrize("value", [0, 1, "true", "", [], {}])
@pytest.mark.parametrize("key", ["tie_word_embeddings", "attention_bias", "mlp_bias"])
def test_what_is_no_switch(key: str, value: Any, bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{key} is .*, expected true or false"):
        bound(small | {key: value})


@pytest.mark.parametrize("file", ["config.json", "params.json"])
def test_a_vocabulary_left_to_the_tokenizer(file: str, bound: Bound, small: dict[str, Any]) -> None:
    """Llama 2's own params.json says -1."""
    settings = small if file == "config.json" else META
    with pytest.raises(ConfigError, match="vocab_size is -1, which some of Meta's files have") as caught:
        bound(settings | {"vocab_size": -1}, file)
    assert "`atlas models`" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "words", "hint"),
    [
        ({"hidden_size": 50}, "hidden_size (50) / num_attention_heads (12) leaves a remainder", "head_dim"),
        (
            {"num_key_value_heads": 5},
            "num_attention_heads (12) / num_key_value_heads (5) leaves a remainder",
            "",
        ),
        (
            {"num_key_value_heads": 24},
            "num_attention_heads (12) / num_key_value_heads (24) leaves a remainder",
            "",
        ),
        (
            {"head_dim": 5},
            "head_dim (width of a head) is 5: attention rotates 5 entries, expected planes of two",
            "",
        ),
        (
            {"num_attention_heads": 16, "num_key_value_heads": 16},
            "head_dim (width of a head) is 3: attention rotates 3 entries",
            "",
        ),
    ],
)
def test_sizes_that_do_not_divide(
    change: dict[str, Any], words: str, hint: str, bound: Bound, small: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(small | change)
    assert words in caught.value.message
    assert hint in caught.value.message


REFUSED = [
    ("num_local_experts", 8),
    ("num_experts", 64),
    ("n_routed_experts", 2),
    ("kv_lora_rank", 512),
    ("q_lora_rank", 1536),
    ("qk_norm", True),
    ("use_qk_norm", True),
    ("num_nextn_predict_layers", 1),
    ("is_encoder_decoder", True),
    ("add_cross_attention", True),
    ("vision_config", {"hidden_size": 1024}),
    ("text_config", {}),
]


@pytest.mark.parametrize("kind", ["llama", "mistral"])
@pytest.mark.parametrize(("key", "value"), REFUSED)
def test_what_changes_tensors_and_is_not_understood(
    key: str, value: Any, kind: str, bound: Bound, small: dict[str, Any]
) -> None:
    with pytest.raises(
        ConfigError, match=f"{key} is .*, which changes the model's tensors and is not described"
    ):
        bound(small | {"model_type": kind, key: value})


@pytest.mark.parametrize("key", ["attention_bias", "mlp_bias"])
def test_mistral_has_no_biases_to_switch_on(key: str, bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{key} is true, which changes the model's tensors"):
        bound(small | {"model_type": "mistral", key: True})
    assert total(bound(small | {"model_type": "mistral", key: False})) == TOTAL


@pytest.mark.parametrize(("key", "value"), [("num_local_experts", 1), ("num_experts", 0), ("qk_norm", False)])
def test_values_that_change_nothing_are_no_refusal(
    key: str, value: Any, bound: Bound, small: dict[str, Any]
) -> None:
    graph = bound(small | {key: value})
    assert (total(graph), graph.model.warnings) == (TOTAL, ())


@pytest.mark.parametrize(
    ("key", "value"), [("num_local_experts", True), ("qk_norm", 0), ("num_experts", False)]
)
def test_a_switch_is_no_number_and_a_number_no_switch(
    key: str, value: Any, bound: Bound, small: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=f"{key} is "):
        bound(small | {key: value})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (..., "model_type is missing, so the architecture is unknown"),
        (None, "model_type is missing, so the architecture is unknown"),
        ("qwen9", "model_type 'qwen9' is not described yet; "),
        ("Llama", "model_type 'Llama' is not described yet"),
        ("meta", "model_type 'meta' is not described yet"),
        (3, "model_type 3 is not described yet"),
        (["llama"], 'model_type ["llama"] is not described yet'),
        ("", "model_type '' is not described yet"),
    ],
)
def test_model_types(kind: Any, words: str, bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        bound({key: value for key, value in (small | {"model_type": kind}).items() if value is not ...})
    assert words in caught.value.message


def test_a_long_model_type_is_not_echoed_whole(bound: Bound, small: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(small | {"model_type": "x" * 100_000})
    assert len(caught.value.message) < 300


# ---------------------------------------------------------------- Meta's params.json


def test_params(bound: Bound) -> None:
    """2 × (4 × 48) / 3 = 128, a multiple of 16 already."""
    graph = bound(META, "params.json")
    assert graph.dims["ffn_dim"] == 128
    assert total(graph) == 2 * 100 * 48 + 48 + 3 * (LAYER + 3 * 48 * 48)
    assert graph.model.flags["tied"] is False
    assert (graph.model.rope, graph.model.notes, graph.model.warnings) == ({}, (), ())


@pytest.mark.parametrize(
    ("change", "width"),
    [
        ({"ffn_dim_multiplier": 1.4}, 192),  # int(1.4 × 128) = 179, up to 16 × 12
        ({"ffn_dim_multiplier": None}, 128),
        ({"multiple_of": 100}, 200),
        ({"multiple_of": None}, 256),  # ModelArgs' own
    ],
)
def test_the_width_follows(change: dict[str, Any], width: int, bound: Bound) -> None:
    assert bound(META | change, "params.json").dims["ffn_dim"] == width


def test_scaled_positions_of_meta(bound: Bound) -> None:
    """Meta's code has the numbers itself: 8, 1, 4 and 8,192."""
    assert bound(META | {"use_scaled_rope": True}, "params.json").model.rope == SCALED
    assert bound(META | {"use_scaled_rope": False}, "params.json").model.rope == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"multiple_of": 16.0}, "multiple_of is 16.0, expected a positive integer"),
        ({"multiple_of": 0}, "multiple_of is 0, expected a positive number"),
        ({"multiple_of": "16"}, 'multiple_of is "16", expected a positive number'),
        ({"ffn_dim_multiplier": 0}, "ffn_dim_multiplier is 0, expected a positive number"),
        ({"ffn_dim_multiplier": -1.3}, "ffn_dim_multiplier is -1.3, expected a positive number"),
        ({"ffn_dim_multiplier": math.nan}, "ffn_dim_multiplier is NaN, expected a positive number"),
        (
            {"ffn_dim_multiplier": 1e308},
            "ffn_dim_multiplier 1e+308 give a feed-forward of width zero, or beyond any number",
        ),
        ({"ffn_dim_multiplier": 1e300}, "ffn_dim_multiplier 1e+300 give a feed-forward of width 1"),
        (
            {"ffn_dim_multiplier": 1e-9},
            "multiple_of 16 and ffn_dim_multiplier 1e-09 give a feed-forward of width zero",
        ),
        (
            {"multiple_of": 2**60},
            "multiple_of 1152921504606846976 and ffn_dim_multiplier null give a feed-forward",
        ),
        ({"multiple_of": 10**400}, "multiple_of is 1000"),
        ({"use_scaled_rope": 1}, "use_scaled_rope is 1, expected true or false"),
        ({"hidden_dim": 128}, "hidden_dim is 128, which changes the model's tensors"),
        ({"lora_args": {"rank": 16, "scale": 2.0}}, "lora_args is "),
        ({"vision_chunk_size": 448}, "vision_chunk_size is 448, which changes the model's tensors"),
        ({"moe_args": {"num_experts": 16}}, "moe_args is "),
    ],
)
def test_params_that_cannot_be_understood(change: dict[str, Any], words: str, bound: Bound) -> None:
    with pytest.raises(ConfigError) as caught:
        bound(META | change, "params.json")
    assert words in caught.value.message
    assert len(caught.value.message) < 300


def test_quantised_params_are_counted_with_a_note(bound: Bound, library: Library) -> None:
    graph = bound(META | {"quantization_args": {"group_size": 256}}, "params.json")
    assert any("quantised" in note for note in counts.count(graph, library).notes)
    assert memory(graph, context=8).weights_bytes is None
    assert "quantised" in (memory(graph, context=8).weights_reason or "")


# ---------------------------------------------------------------- the file itself


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("{", "not JSON: Expecting property name"),
        ('{"a": 1,}', "not JSON: "),
        ("{'a': 1}", "not JSON: "),
        ('{"a": 1}\n{"b": 2}', "not JSON: Extra data at line 2, column 1"),
        ("[1]", "expected a JSON object of settings, found [1]"),
        ("null", "expected a JSON object of settings, found null"),
        ('"llama"', 'expected a JSON object of settings, found "llama"'),
        ("12", "expected a JSON object of settings, found 12"),
        ('{"vocab_size": 1, "vocab_size": 2}', "duplicate key 'vocab_size' in one object"),
        ('{"a": {"b": 1, "b": 1}}', "duplicate key 'b' in one object"),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:9a\nsize 3",
            "is a Git LFS pointer, not the file itself",
        ),
        ("[" * 100_000 + "]" * 100_000, "JSON beyond the reader's limits"),
        ('{"a": ' * 50_000 + "1" + "}" * 50_000, "JSON beyond the reader's limits"),
        ('{"hidden_size": ' + "9" * 5_000 + "}", "JSON beyond the reader's limits"),
        ("<!doctype html><html></html>", "is a web page, not JSON"),
    ],
)
def test_a_file_that_is_no_configuration(
    text: str, words: str, write_config: Write, library: Library
) -> None:
    path = write_config(text)
    with pytest.raises(ConfigError) as caught:
        from_path(path, library)
    assert words in caught.value.message
    assert str(path) in caught.value.message
    assert "\n" not in caught.value.message


def test_a_byte_order_mark_and_other_encodings(
    tmp_path: Path, small: dict[str, Any], library: Library
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(json.dumps(small).encode("utf-16"))
    with pytest.raises(ConfigError, match="not JSON: byte 0 is not UTF-8"):
        from_path(path, library)
    path.write_bytes(b'{"model_type": "\xff"}')
    with pytest.raises(ConfigError, match="not JSON: byte 16 is not UTF-8"):
        from_path(path, library)
    path.write_bytes(json.dumps(small).encode("utf-8-sig"))
    with pytest.raises(ConfigError, match="not JSON"):
        from_path(path, library)


def test_nan_and_infinity_are_said_by_name(
    write_config: Write, small: dict[str, Any], library: Library
) -> None:
    """Python writes and reads them, JSON does not have them; a dimension is none of them."""
    text = json.dumps(small | {"hidden_size": math.nan})
    assert "NaN" in text
    with pytest.raises(ConfigError, match="hidden_size is NaN, expected a positive integer"):
        from_path(write_config(text), library)


def test_folders_and_paths(
    tmp_path: Path, write_config: Write, small: dict[str, Any], library: Library
) -> None:
    with pytest.raises(ConfigError, match=r"contains neither a config\.json nor a params\.json") as caught:
        from_path(tmp_path, library)
    assert caught.value.hint == "it is empty"
    (tmp_path / "model.safetensors").touch()
    (tmp_path / "deeper").mkdir()
    with pytest.raises(ConfigError, match=r"contains neither a config\.json nor a params\.json") as caught:
        from_path(tmp_path, library)
    assert (
        caught.value.hint == "it contains safetensors files; give the config.json or the Hub id of the model"
    )
    with pytest.raises(ConfigError, match=r"nothing\.json: no such file or folder"):
        from_path(tmp_path / "nothing.json", library)
    (tmp_path / "config.json").mkdir()
    with pytest.raises(ConfigError, match="contains neither"):
        from_path(tmp_path, library)
    (tmp_path / "config.json").rmdir()
    write_config(META, "params.json")
    assert from_path(tmp_path, library).numbers["norm_eps"] == 1e-6
    write_config(small)
    assert from_path(tmp_path, library).numbers["norm_eps"] == 1e-5  # a config.json comes first


def test_paths_that_are_none(library: Library) -> None:
    with pytest.raises(ConfigError, match="is not a path"):
        from_path(Path("a\0b/config.json"), library)
    with pytest.raises(ConfigError, match="cannot be read: File name too long"):
        from_path(Path("x" * 5_000), library)
    with pytest.raises(ConfigError, match="is neither a file nor a folder"):
        from_path(Path("/dev/null"), library)


def test_params_under_another_name(write_config: Write, library: Library) -> None:
    """Meta's fields are known by themselves; Hub fields without a model_type are not guessed at."""
    assert from_path(write_config(META, "llama.json"), library).dims["dim"] == 48
    with pytest.raises(ConfigError, match="model_type is missing"):
        from_path(write_config({"hidden_size": 48}, "other.json"), library)


def test_a_model_is_called_by_its_path(write_config: Write, small: dict[str, Any], library: Library) -> None:
    path = write_config(small | {"_name_or_path": "someone/llama"})
    model = from_path(path, library)
    assert (model.id, model.name) == (str(path), str(path))
    assert str(path) in model.rests_on
    assert from_path(write_config(small), library).name == str(path)


# ---------------------------------------------------------------- whatever a file holds

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.integers(),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["llama", "mistral", "silu", "bfloat16", "default", "llama3", "linear"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["rope_type", "type", "factor", "rope_theta", "x"]), inner, max_size=4
        ),
    ),
    max_leaves=5,
)
KEYS = [
    "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
    "vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters",
    "tie_word_embeddings", "attention_bias", "mlp_bias", "torch_dtype", "dtype", "hidden_act", "sliding_window",
    "model_type", "qk_norm", "num_experts", "anything", "_name_or_path",
]  # fmt: skip
META_KEYS = [
    *META,
    "ffn_dim_multiplier",
    "use_scaled_rope",
    "max_seq_len",
    "hidden_dim",
    "vision_chunk_size",
    "other",
]


def counted_or_refused(changes: dict[str, Any], base: dict[str, Any], file: str, library: Library) -> None:
    try:
        graph = bind(
            config.describe(base | changes, library, id="a test's configuration", file=file), library
        )
        found = counts.count(graph, library)
    except AtlasError as error:
        text = error.message
        assert text, changes
        assert "\n" not in text
    else:
        assert found.total_parameters > 0
        assert json.dumps(found.total_parameters)


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(KEYS), values, max_size=6))
def test_any_config_is_counted_or_refused(
    changes: dict[str, Any], small: dict[str, Any], library: Library
) -> None:
    counted_or_refused(changes, small, "config.json", library)


@settings(deadline=None, max_examples=200)
@given(changes=st.dictionaries(st.sampled_from(META_KEYS), values, max_size=6))
def test_any_params_are_counted_or_refused(changes: dict[str, Any], library: Library) -> None:
    counted_or_refused(changes, META, "params.json", library)
