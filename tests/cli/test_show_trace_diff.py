"""`models`, `show`, `trace` and `diff` as a user runs them: formats, names, exit codes, narrow terminals."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import run

CONFIG = {
    "model_type": "llama",
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 12,
    "num_key_value_heads": 6,
    "vocab_size": 100,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., str]:
    """A folder's name and changes to the configuration -> the folder's path."""

    def made(name: str, **changes: Any) -> str:
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIG | changes))
        return str(tmp_path / name)

    return made


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


# ---------------------------------------------------------------- diff


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sliding_window": 32}, ["sliding_window", "32"]),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, ["rope.rope_type", "linear"]),
        ({"hidden_act": "gelu"}, ["act", "silu", "gelu"]),
        ({"quantization_config": {"quant_method": "awq"}}, ["quantization_config.quant_method", "awq"]),
        ({"logit_scale": 0.5}, ["logit_scale", "0.5"]),
        ({"partial_rotary_factor": 0.25}, ["partial_rotary_factor", "0.25"]),
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, ["layer_types"]),
        ({"attention_bias": True}, ["attention_bias", "self_attn.q_proj.bias"]),
        ({"never_heard_of": 7}, ["never_heard_of", "7"]),
    ],
)
def test_a_difference_in_what_is_computed_exits_1_and_is_named(
    changes: dict[str, Any], words: list[str], folder: Callable[..., str]
) -> None:
    a, b = folder("a"), folder("b", **changes)
    ran = run("diff", a, b, "--exit-code", "--quiet")
    assert ran.code == 1
    assert all(word in ran.out for word in words), ran.out
    assert "weights are not compared" in ran.out
    assert "same architecture" not in ran.out
    assert run("diff", a, b, "--quiet").code == 0
    names = {row["name"] for row in run("diff", a, b, "--json", "--quiet").json["settings"]}
    assert words[0] in names


def test_base_and_instruct() -> None:
    ran = run("diff", "llama3.1-8b", "llama3.1-8b-instruct", "--exit-code")
    assert ran.code == 0
    assert (
        ran.out
        == "llama3.1-8b and llama3.1-8b-instruct: same architecture and tensor shapes; weights not compared\n"
    )
    found = run("diff", "llama3.1-8b", "llama3.1-8b-instruct", "--json").json
    assert (found["settings"], found["dims"], found["same_tensors"]) == ([], [], True)
    assert found["weights_compared"] is False


def test_diff_in_csv_has_plain_numbers() -> None:
    found = rows(run("diff", "llama3.1-8b", "llama3.1-70b", "--csv").out)
    dim = next(row for row in found if row["name"] == "dim")
    assert dim == {"kind": "dimension", "name": "dim", "a": "4096", "b": "8192"}
    shape = next(row for row in found if row["name"] == "model.norm.weight")
    assert (shape["a"], shape["b"]) == ("4096", "8192")
    embed = next(row for row in found if row["name"] == "model.embed_tokens.weight")
    assert (embed["a"], embed["b"]) == ("128256x4096", "128256x8192")


def test_diff_shows_the_names_that_are_asked_for() -> None:
    meta = run("diff", "llama3.2-1b", "llama3.2-3b", "--names", "meta").out
    assert "attention.wq" in meta
    assert "layers.16.attention_norm.weight" in meta
    hub = run("diff", "llama3.2-1b", "llama3.2-3b", "--names", "hf").out
    assert "self_attn.q_proj" in hub
    assert "model.layers.16.input_layernorm.weight" in hub
    assert run("diff", "llama3.2-1b", "llama3.2-3b", "--names", "gguf").code == 2


def test_diff_of_traces(tmp_path: Path) -> None:
    files = []
    for name in ("llama3-8b", "llama3.1-8b", "llama3.2-1b"):
        files.append(tmp_path / name)
        files[-1].write_text(run("trace", name, "--json").out)
    one, equal, other = map(str, files)
    # Llama 3 and 3.1 differ in RoPE's frequencies, which a declared trace does not hold; the model's name differs.
    found = run("diff", "--trace", one, equal, "--json").json
    assert found["changed"] == [{"step": None, "field": "model", "a": "llama3-8b", "b": "llama3.1-8b"}]
    assert run("diff", "--trace", one, one, "--exit-code").code == 0
    ran = run("diff", "--trace", one, other, "--exit-code")
    assert ran.code == 1
    assert "first difference in tok_embeddings.embedded" in ran.out
    assert "steps only in" in ran.out
    refused = run("diff", "--trace", one, "llama3.1-8b")
    assert refused.code == 2
    assert "--trace llama3.1-8b" in refused.err


# ---------------------------------------------------------------- trace


def test_trace_folds_layers_and_json_and_csv_do_not(folder: Callable[..., str]) -> None:
    model = folder("a")
    table = run("trace", model, "--names", "meta").out
    assert "layers.0–2.attention.scores" in table
    assert "layers.1.attention.scores" not in table
    every = run("trace", model, "--names", "meta", "--all").out
    assert "layers.1.attention.scores" in every
    assert "–" not in every
    steps = run("trace", model, "--json").json["steps"]
    assert [step["id"] for step in steps if step["symbol"] == "q"][:1] == ["layers.0.attention.q"]
    scores = next(step for step in steps if step["id"] == "layers.2.attention.scores")
    assert scores["input_steps"] == ["layers.2.attention.q_rotated", "layers.2.attention.keys"]
    assert len(rows(run("trace", model, "--csv").out)) == len(steps) == 1 + 3 * 27 + 5


def test_trace_in_csv(folder: Callable[..., str]) -> None:
    """Scores of 12 heads, 5 positions against 5 keys, in BF16: 2 × 12 × 5 × 5 × 2 bytes; 2 FLOPs × 4 a product."""
    ran = run("trace", folder("a"), "--csv", "--batch", "2", "--positions", "5", "--names", "meta")
    scores = next(row for row in rows(ran.out) if row["step"] == "layers.1.attention.scores")
    assert scores["shape"] == "2x12x5x5"
    assert scores["bytes"] == str(2 * 12 * 5 * 5 * 2)
    assert scores["flops"] == str(2 * 2 * 12 * 5 * 5 * 4)
    assert (scores["layer"], scores["dtype"], scores["component"]) == ("1", "BF16", "attention")
    assert ran.out.splitlines()[0].isascii()


def test_a_configuration_of_the_hub_has_the_hubs_names(folder: Callable[..., str]) -> None:
    model = folder("a")
    hub = run("trace", model).out
    assert "layers.0–2.self_attn.scores" in hub
    assert "layers.0–2.mlp.gate" in hub
    assert "lm_head.logits" in hub
    assert "layers.0–31.feed_forward.gate" in run("trace", "llama3.1-8b").out
    assert "layers.0–31.mlp.gate" in run("trace", "llama3.1-8b", "--names", "hf").out


def test_trace_of_one_layer_and_one_component() -> None:
    found = run("trace", "llama3.1-8b", "--layer", "3", "--component", "gate_proj", "--json").json
    assert [step["id"] for step in found["steps"]] == ["layers.3.feed_forward.gate"]
    assert found["logits"]["shape"] == ["B", "T", 128256]
    refused = run("trace", "llama3.1-8b", "--layer", "32")
    assert (refused.code, refused.out) == (2, "")
    assert "expected 0 to 31" in refused.err


# ---------------------------------------------------------------- show and models


def test_show_is_one_screen(folder: Callable[..., str]) -> None:
    ran = run("show", "llama3.1-8b", COLUMNS="80")
    assert len(ran.out.splitlines()) <= 30
    words = ran.out.split()
    for fact in ("llama3.1-8b", "4,096", "14,336", "128,256", "131,072", "500,000", "8,030,261,248", "BF16"):
        assert fact in words
    both = run("show", "llama3.1-8b", folder("a", sliding_window=32), "--quiet").out
    assert "not described: sliding_window = 32" in both


def test_show_in_csv_is_one_row_per_model() -> None:
    found = rows(run("show", "llama3.1-8b", "llama3.2-1b", "--csv").out)
    assert [row["id"] for row in found] == ["llama3.1-8b", "llama3.2-1b"]
    assert [row["total_parameters"] for row in found] == ["8030261248", "1235814400"]
    assert [row["kv_bytes_per_token"] for row in found] == ["131072", "32768"]
    assert [row["n_layers"] for row in found] == ["32", "16"]


def test_show_has_a_schema_and_its_output_validates() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="the schema check needs jsonschema")
    schema = run("schema", "show").json
    jsonschema.validate(run("show", "llama3.1-8b", "llama3.2-1b", "--json").json, schema)
    jsonschema.validate(run("show", "nothing", "--json").json, schema)


def test_models_by_words() -> None:
    found = run("models", "3.1", "8B", "--json").json["models"]
    assert [model["id"] for model in found] == ["llama3.1-8b", "llama3.1-8b-instruct"]
    assert {model["follows"] for model in found} == {"llama3"}
    assert "llama3.1 · Meta 2024-07, follows llama3" in run("models", "3.1").out
    listed = rows(run("models", "--csv", "--publisher", "Meta").out)
    assert next(row for row in listed if row["id"] == "llama2-7b")["parameters"] == "6738415616"


# ---------------------------------------------------------------- narrow terminals

IDS = [
    (
        ["models"],
        ["llama-guard-3-8b", "llama4-maverick-17b-128e-instruct:fp8", "meta-llama/Llama-3.1-405B-FP8"],
    ),
    (["show", "llama3.1-8b", "llama-guard-3-1b", "llama3.1-405b:bf16-mp16"], ["llama3.1-405b:bf16-mp16"]),
    (["trace", "llama3.1-8b"], ["layers.0–31.attention.weights_rounded", "[B, T, 128256]"]),
    (
        ["trace", "llama3.1-8b", "--names", "hf", "--all"],
        ["layers.31.post_attention_layernorm.rounded", "33554432*B*T"],
    ),
    (
        ["diff", "llama3-8b", "llama3.1-70b"],
        ["rope.original_max_position_embeddings", "model.layers.32.input_layernorm.weight"],
    ),
]


@pytest.mark.parametrize("columns", ["60", "80", "100"])
@pytest.mark.parametrize(("command", "ids"), IDS, ids=[" ".join(row[0]) for row in IDS])
def test_no_id_is_broken(command: list[str], ids: list[str], columns: str) -> None:
    out = run(*command, "--quiet", COLUMNS=columns).out
    for id in ids:
        assert id in out, out


@pytest.mark.parametrize(
    "command", ["models", "show llama3.1-8b", "trace llama3.1-8b", "diff llama3-8b llama3-70b"]
)
def test_two_formats_at_once_are_refused(command: str) -> None:
    ran = run(*command.split(), "--json", "--csv")
    assert ran.code == 2
    assert "exclude each other" in ran.json["error"]["message"]
    markdown = run(*command.split(), "--markdown", "--quiet").out.splitlines()
    assert markdown[1].startswith("| ---")
    assert {line.count(" | ") for line in markdown} == {markdown[0].count(" | ")}
