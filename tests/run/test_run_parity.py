"""Logits against others' code: transformers, Meta's own modules, and the expected files that came with the checkpoints."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip(
    "torch", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from safetensors.torch import load_file

from atlas.execution.checkpoint_weights import CheckpointWeights
from atlas.execution.options import Options
from atlas.execution.runner import Runner
from atlas.execution.session import run
from atlas.execution.state import KVCache
from atlas.graph.binding import bind
from atlas.resolution.resolve import from_path
from atlas.spec.library import Library

CPU = torch.device("cpu")
LENGTH = 97  # beyond the original context of the scaled case below, in which every kind of plane occurs
SCALED = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
HUB = {
    "multi-head": {"num_key_value_heads": 12},
    "grouped": {},
    "multi-query": {"num_key_value_heads": 1},
    "tied": {"tie_word_embeddings": True},
    "biased": {"attention_bias": True, "mlp_bias": True},
    "scaled positions": {"rope_parameters": SCALED},
    "head width of its own": {"head_dim": 14},
    "mistral": {"model_type": "mistral", "sliding_window": None},
}


@pytest.fixture(params=HUB)
def hubs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Any]:
    """A folder as transformers writes it, and the model."""
    transformers = pytest.importorskip("transformers", reason="the logits are held against its own")
    settings = {
        "hidden_size": 120,
        "intermediate_size": 44,
        "vocab_size": 67,
        "num_hidden_layers": 3,
        "num_attention_heads": 12,
        "num_key_value_heads": 3,
        "initializer_range": 0.1,
        "rms_norm_eps": 1e-5,
        "max_position_embeddings": 2048,
    } | HUB[request.param]
    kind = settings.pop("model_type", "llama")
    torch.manual_seed(11)
    model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **settings))
    for (
        parameter
    ) in model.parameters():  # norms and biases are initialised to ones and zeros, which hide faults
        if parameter.dim() == 1:
            parameter.data += 0.3 * torch.randn_like(parameter)
    model.save_pretrained(tmp_path)
    return tmp_path, model.eval()


def test_logits_equal_those_of_transformers(hubs: tuple[Path, Any], logits_of: Callable[..., Any]) -> None:
    folder, model = hubs
    tokens = torch.randint(67, (2, LENGTH))
    with torch.inference_mode():
        expected = model(tokens).logits
    assert expected.std() > 0.5
    for fuse in (False, True):
        torch.testing.assert_close(logits_of(folder, tokens, fuse=fuse), expected, atol=5e-5, rtol=0)


# ---- Meta's own modules

METAS = {
    "multi-head": {"n_kv_heads": None},
    "grouped": {},
    "multi-query": {"n_kv_heads": 1},
    "scaled positions": {"use_scaled_rope": True},
}


@pytest.fixture(params=METAS)
def metas(request: pytest.FixtureRequest, store: Callable[..., Path], meta: ModuleType) -> tuple[Path, Any]:
    """A folder in Meta's layout, and the module with the same weights."""
    settings = {
        "dim": 120,
        "n_layers": 3,
        "n_heads": 12,
        "n_kv_heads": 3,
        "vocab_size": 67,
        "multiple_of": 4,
        "norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "use_scaled_rope": False,
    } | METAS[request.param]
    torch.manual_seed(13)
    model = meta.Transformer(meta.ModelArgs(**settings, max_batch_size=2, max_seq_len=LENGTH))
    for name, parameter in model.named_parameters():
        parameter.data.normal_(1.0 if "norm" in name else 0.0, 0.1)
    return store(settings, model.state_dict(), name="consolidated.00"), model


def test_logits_equal_those_of_metas_modules(metas: tuple[Path, Any], logits_of: Callable[..., Any]) -> None:
    folder, model = metas
    tokens = torch.randint(67, (2, LENGTH))
    expected = model(tokens, 0)
    assert expected.std() > 0.5
    for fuse in (False, True):
        torch.testing.assert_close(logits_of(folder, tokens, fuse=fuse), expected, atol=5e-5, rtol=0)


def test_bfloat16_is_rounded_where_metas_modules_round(
    metas: tuple[Path, Any], logits_of: Callable[..., Any]
) -> None:
    folder, model = metas
    model.to(torch.bfloat16)
    tokens = torch.randint(67, (1, LENGTH))
    expected = model(tokens, 0)
    found = logits_of(folder, tokens, fuse=False, dtype="BF16")
    # Bit for bit here; another processor may sum a few products in another order. Rounded elsewhere, 12 % are equal.
    assert (found == expected).float().mean() > 0.95


def test_passes_over_the_cache_equal_those_of_metas_modules(
    metas: tuple[Path, Any], library: Library
) -> None:
    folder, model = metas
    graph = bind(from_path(folder, library), library)
    weights = CheckpointWeights(graph, folder, device=CPU)
    tokens = torch.randint(67, (2, 30))
    for fuse in (False, True):
        runner = Runner(graph, weights, dtype=torch.float32, device=CPU, fuse=fuse)
        cache = KVCache(30)
        for begin, end in [(0, 13), (13, 14), (14, 22), (22, 23), (23, 30)]:
            found = runner(tokens[:, begin:end], past=begin, cache=cache)
            expected = model(tokens[:, begin:end], begin)
            torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)


# ---- published and prepared expectations


@pytest.mark.parametrize("layout", ["hf", "meta"])
@pytest.mark.parametrize("fuse", [False, True], ids=["as declared", "fused"])
def test_tiny_scaled(
    shared: Path, library: Library, logits_of: Callable[..., Any], layout: str, fuse: bool
) -> None:
    folder = shared / "checkpoints" / "tiny_scaled"
    expected = load_file(folder / "expected.safetensors")
    for name in ("len1", "len13", "len40", "len1000", "batch2_len13"):
        ids, logits = expected[f"ids.{name}"], expected[f"logits.{name}"]
        found = logits_of(folder / layout, ids if ids.dim() == 2 else ids[None], fuse=fuse)
        torch.testing.assert_close(found.view_as(logits), logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("layout", ["hf", "meta"])
def test_tiny_scaled_with_a_cache(shared: Path, library: Library, layout: str) -> None:
    folder = shared / "checkpoints" / "tiny_scaled"
    expected = load_file(folder / "expected.safetensors")
    graph = bind(from_path(folder / layout, library), library)
    weights = CheckpointWeights(graph, folder / layout, device=CPU)
    runner = Runner(graph, weights, dtype=torch.float32, device=CPU, fuse=True)
    for name in ("len1", "len13", "len40", "len1000"):
        ids, logits = expected[f"ids.{name}"][None], expected[f"logits.{name}"]
        cache, found = KVCache(ids.shape[1]), []
        for begin in range(0, ids.shape[1], step := 1 if ids.shape[1] < 100 else 90):
            found.append(runner(ids[:, begin : begin + step], past=begin, cache=cache))
        torch.testing.assert_close(torch.cat(found, 1)[0], logits, atol=1e-4, rtol=0)


@pytest.mark.parametrize("layout", ["hf", "meta"])
def test_stories260k_tells_the_published_story(shared: Path, library: Library, layout: str) -> None:
    folder = shared / "checkpoints" / "stories260k"
    options = Options(
        weights=folder / layout,
        tokenizer=folder / "hf" / "tokenizer.json",
        max_new_tokens=200,
    )
    result = run(bind(from_path(folder / layout, library), library), options)
    assert result.generated.text == (folder / "expected.txt").read_text()
    assert result.prompt_ids == (1,)
    assert len(result.generated.ids) == 200
    assert (result.weights, result.dtype, result.confirmed) == ("checkpoint", "F32", True)


def test_a_bos_in_the_text_is_not_added_again(shared: Path, library: Library) -> None:
    case = json.loads((shared / "cases" / "cases" / "11-double-bos" / "case.json").read_text())
    values = case["expected_values"]
    folder = shared / "cases" / "cases" / "11-double-bos" / "model"
    graph = bind(from_path(folder, library), library)
    options = Options(prompt="<|begin_of_text|>hello world", weights=folder, dtype="float32")
    result = run(graph, options)
    assert list(result.prompt_ids) == values["token ids"]
    assert [token.id for token in result.next_tokens] == values["top 5 ids, float32"]
    assert [round(token.logit, 4) for token in result.next_tokens] == values["top 5 logits, float32"]
    assert any("already begins with BOS" in note for note in result.notes)
    twice = run(graph, replace(options, prompt="", token_ids=(1, 1, 3, 4)))
    assert twice.next_tokens[0].id == values["first token id if BOS doubled (wrong)"]
