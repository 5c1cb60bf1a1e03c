"""Checkpoints of a whole model that were saved in another form: each has one cause, and is one finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.checkpoints import CONFIG, T, Tensors, hub, save
from tests.verify.conftest import Check

GOOD = hub()
MATRICES = 7 * 3  # q, k, v, o, gate, up and down of three layers
BY_ROWS = ("q_proj.", "k_proj.", "v_proj.", "gate_proj.", "up_proj.", "embed_tokens.", "lm_head.")


def rank(of: int, kv_of: int | None = None, whole: tuple[str, ...] = ()) -> Tensors:
    """A rank's share, as Megatron's column- and row-parallel layers divide the matrices."""
    found = {}
    for name, (shape, dtype) in GOOD.items():
        count = (kv_of or of) if "k_proj" in name or "v_proj" in name else of
        if any(word in name for word in whole) or len(shape) == 1:
            pass
        elif any(word in name for word in BY_ROWS):
            shape = (shape[0] // count, shape[1])
        else:
            shape = (shape[0], shape[1] // count)
        found[name] = T(shape, dtype)
    return found


@pytest.mark.parametrize("files", [1, 2])
def test_shares_of_tensor_parallel_ranks(files: int, tmp_path: Path, check: Check) -> None:
    named = {f"model-rank-{i}-part-0.safetensors": rank(2) for i in range(files)}
    [finding] = check(save(tmp_path, named)).findings
    assert (finding.code, finding.exit_code, finding.count) == ("shape", 1, MATRICES + 2)
    assert "a share of 2" in finding.message
    assert ("only 1 of the 2 ranks' files is there" in finding.message) == (files == 1)


def test_shares_with_whole_embeddings_and_repeated_heads(tmp_path: Path, check: Check) -> None:
    """transformers divides no embedding; of 4 ranks over 2 key and value heads' worth of rows, two hold the same."""
    [finding] = check(
        save(tmp_path, rank(4, kv_of=2, whole=("embed_tokens.", "lm_head."))), release=None
    ).findings
    assert "a share of 4" in finding.message
    assert finding.count == MATRICES


def test_a_model_of_half_the_width_is_no_share(tmp_path: Path, check: Check) -> None:
    small = hub(CONFIG | {"hidden_size": 24, "num_attention_heads": 6, "num_key_value_heads": 3})
    findings = check(save(tmp_path, small)).findings
    assert not any("share of" in finding.message for finding in findings)


def test_fused_matrices(tmp_path: Path, check: Check) -> None:
    tensors = {
        name: tensor
        for name, tensor in GOOD.items()
        if not any(part in name for part in ("q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"))
    }
    for i in range(3):
        tensors[f"model.layers.{i}.self_attn.qkv_proj.weight"] = T((48 + 24 + 24, 48))
        tensors[f"model.layers.{i}.mlp.gate_up_proj.weight"] = T((80 + 80, 48))
    result = check(save(tmp_path, tensors))
    [finding] = result.findings
    assert (finding.code, finding.exit_code, finding.expected, finding.found) == ("unexpected", 1, 15, 6)
    assert "stored fused" in finding.message
    assert "qkv_proj.weight holds q_proj, k_proj and v_proj" in finding.message
    assert f"{3 * (96 + 160) * 48:,} parameters" in finding.message
    assert result.parameters.expected == result.parameters.found


def test_a_matrix_of_other_rows_is_not_fused(tmp_path: Path, check: Check) -> None:
    tensors = {name: tensor for name, tensor in GOOD.items() if "up_proj" not in name and "gate" not in name}
    tensors |= {f"model.layers.{i}.mlp.gate_up_proj.weight": T((159, 48)) for i in range(3)}
    assert not any("fused" in finding.message for finding in check(save(tmp_path, tensors)).findings)


@pytest.mark.parametrize("base_layer", [True, False])
def test_an_adapter_that_was_not_merged(base_layer: bool, tmp_path: Path, check: Check) -> None:
    tensors: Tensors = {}
    for name, tensor in GOOD.items():
        if "q_proj" in name:
            module = name.removesuffix("weight")
            tensors[f"{module}base_layer.weight" if base_layer else name] = tensor
            tensors[f"{module}lora_A.default.weight"] = T((4, 48))
            tensors[f"{module}lora_B.default.weight"] = T((48, 4))
        else:
            tensors[name] = tensor
    [finding] = check(save(tmp_path, tensors)).findings
    assert (finding.code, finding.exit_code, finding.count) == ("unexpected", 1, 3 * 2)
    assert "adapter that was not merged" in finding.message


def test_tensors_without_elements(tmp_path: Path, check: Check) -> None:
    """As a trainer that shards its parameters saves them when they were not gathered."""
    tensors = {name: T((0,)) if "proj" in name else tensor for name, tensor in GOOD.items()}
    [finding] = check(save(tmp_path, tensors)).findings
    assert (finding.code, finding.exit_code, finding.count) == ("shape", 1, MATRICES)
    assert "model.layers.0.self_attn.q_proj.weight and 20 more tensors have no elements" in finding.message
    assert "gather" in finding.message


def test_the_names_of_february_2023(tmp_path: Path, check: Check) -> None:
    """As the first conversions to transformers wrote them."""
    former = [("model.", "model.decoder."), ("mlp.gate_proj", "feed_forward.w1"), ("mlp.down_proj", "feed_forward.w2"),
              ("mlp.up_proj", "feed_forward.w3"), ("input_layernorm", "attention_norm"), ("post_attention_layernorm", "ffn_norm")]  # fmt: skip
    tensors = {}
    for name, tensor in GOOD.items():
        for new, old in former:
            name = name.replace(new, old)
        tensors[name] = tensor
    assert "model.decoder.layers.2.feed_forward.w3.weight" in tensors
    result = check(save(tmp_path, tensors))
    [finding] = result.findings
    assert (finding.code, finding.exit_code, finding.count) == ("unexpected", 1, 29)  # all but lm_head
    assert "30 of 30 match" in finding.message
    assert "February 2023" in finding.message
    assert result.parameters.expected == result.parameters.found


def test_biases_of_queries_keys_and_values_alone(tmp_path: Path, check: Check) -> None:
    rows = {"q": 48, "k": 24, "v": 24}
    biases = {f"model.layers.{i}.self_attn.{p}_proj.bias": T((rows[p],)) for i in range(3) for p in rows}
    [finding] = check(save(tmp_path, GOOD | biases, config=CONFIG | {"attention_bias": True})).findings
    assert (finding.code, finding.exit_code, finding.count) == ("missing", 1, 3)
    assert "o_proj.bias" in finding.message
    assert "transformers sets a missing bias to zero" in finding.message


def test_what_transformers_makes_of_a_missing_bias(tmp_path: Path) -> None:
    """The claim above, by transformers itself."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    config = transformers.LlamaConfig(**{**CONFIG, "attention_bias": True})
    model = transformers.LlamaForCausalLM(config)
    model.model.layers[0].self_attn.o_proj.bias.data.fill_(3)
    state = {name: tensor for name, tensor in model.state_dict().items() if "o_proj.bias" not in name}
    model.save_pretrained(tmp_path, state_dict=state)
    loaded = transformers.LlamaForCausalLM.from_pretrained(tmp_path)
    assert not torch.count_nonzero(loaded.model.layers[0].self_attn.o_proj.bias)


@pytest.mark.parametrize("scales", [True, False])
def test_fp8_that_no_configuration_declares(scales: bool, tmp_path: Path, check: Check) -> None:
    tensors = {
        name: T(tensor.shape, "F8_E4M3") if "proj" in name else tensor for name, tensor in GOOD.items()
    }
    if scales:
        tensors |= {f"{name}_scale": T((1,), "F32") for name in GOOD if "proj" in name}
    [finding] = check(save(tmp_path, tensors)).findings
    assert (finding.code, finding.exit_code) == ("quantisation", 1)
    assert finding.count == MATRICES * (2 if scales else 1)
    assert f"{MATRICES} tensors in F8_E4M3" in finding.message


@pytest.mark.parametrize("key", ["quantization", "compression_config", "quantization_config"])
def test_a_declared_quantisation_is_one_finding(key: str, tmp_path: Path, check: Check) -> None:
    tensors = {
        name: T((tensor.shape[0], 6), "U32") if "proj" in name else tensor for name, tensor in GOOD.items()
    }
    tensors |= {f"{name.removesuffix('weight')}scales": T((48, 3)) for name in GOOD if "proj" in name}
    result = check(save(tmp_path, tensors, config=CONFIG | {key: {"bits": 4, "group_size": 16}}))
    [finding] = result.findings
    assert (result.verdict, finding.code, finding.exit_code) == ("not described", "quantisation", 2)
    assert result.title == "not described: the file is sound"


def test_another_models_weights_show_no_number_of_heads(tmp_path: Path, check: Check) -> None:
    """48 rows are 12 heads of 4, or 3 of 16: nothing in the file tells."""
    findings = check(save(tmp_path, GOOD), model="llama3.2-1b").findings
    text = " ".join(finding.message for finding in findings)
    assert "hidden_size 48" in text
    assert "intermediate_size 80" in text
    assert "head" not in text.replace("lm_head", "")
