"""Published checkpoints: two trained ones in both layouts, and eight more by their published names and shapes.

The latter are written as sparse files at their true size: 16 GB of hole for the 8B, with the headers that would be there.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from tests.verify.checkpoints import T, Tensors, hub, index, save, shards, size
from tests.verify.conftest import Check


def read(path: Path) -> Any:
    """The first JSON value of a file: one published index has two, with a merge conflict between them."""
    return json.JSONDecoder().raw_decode(path.read_text(encoding="utf-8"))[0]


# Every number here stands in the README beside them, or in the index as it was published.
@pytest.mark.parametrize(
    ("name", "convention", "tensors", "parameters"),
    [
        ("stories260k/hf", "hf", 47, 260_032),
        ("stories260k/meta", "meta", 48, 292_800),
        (
            "tiny_scaled/hf",
            "hf",
            21,
            2 * 256 * 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 224 * 64) + 64,
        ),
        (
            "tiny_scaled/meta",
            "meta",
            21,
            2 * 256 * 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 224 * 64) + 64,
        ),
    ],
)
def test_a_trained_checkpoint(
    name: str, convention: str, tensors: int, parameters: int, shared: Path, check: Check
) -> None:
    result = check(shared / "checkpoints" / name)
    assert result.findings == ()
    assert (result.convention, result.tensors.found) == (convention, tensors)
    assert result.parameters.found == result.parameters.expected == parameters
    assert result.bytes.found == result.bytes.expected == 4 * parameters  # all four are stored in F32


def written(shared: Path, name: str, folder: Path, bare: str = "") -> dict[str, Any]:
    """A published checkpoint as sparse files; its index. `bare`: a prefix that its names lack."""
    published = shared / "real" / name
    listed, config = read(published / "index.json"), read(published / "config.json")
    shapes = {
        tensor.removeprefix(bare): tuple(shape)
        for tensor, shape in read(published / "expected_shapes.json").items()
    }
    if "model.embed_tokens.weight" in shapes:
        shapes.setdefault(
            "lm_head.weight", shapes["model.embed_tokens.weight"]
        )  # what a tied head's would be
    dtype = {"float16": "F16", "bfloat16": "BF16"}[config.get("torch_dtype", "bfloat16")]
    files: dict[str, Tensors] = {}
    for tensor, file in listed["weight_map"].items():
        # The files of some are pickles; here all are safetensors, of the same names otherwise.
        file = file.replace("pytorch_model", "model").replace(".bin", ".safetensors")
        shape = shapes.get(tensor) or (config["hidden_size"] // config["num_attention_heads"] // 2,)
        files.setdefault(file, {})[tensor] = T(shape, dtype)
    renamed = {tensor: file for file, tensors in files.items() for tensor in tensors}
    save(folder, files, config=config, listed={**listed, "weight_map": renamed})
    return {**listed, "weight_map": renamed}


PUBLISHED = {
    "llama-2-13b-elyza": 13_015_864_320,
    "llama-2-70b-lzlv": 68_976_648_192,
    "llama-3.1-8b-modelstock": 8_030_261_248,
    "llama-3.2-3b": 3_212_749_824,
    "llama-7b": 6_738_415_616,
    "yi-1.5-6b-slerp": 6_061_035_520,
    "granite-3b-code-128k": 3_482_503_680,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2-cogito-14b": 14_765_947_904,
}


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_a_published_checkpoint(
    name: str, parameters: int, shared: Path, tmp_path: Path, check: Check
) -> None:
    listed = written(shared, name, tmp_path / "c")
    result = check(tmp_path / "c")
    old = sum(".rotary_emb." in tensor for tensor in listed["weight_map"])
    assert [(finding.code, finding.count) for finding in result.findings] == (
        [("buffer", old)] if old else []
    )
    assert old == (32 if name == "llama-7b" else 0)
    shapes = read(shared / "real" / name / "expected_shapes.json")
    assert parameters == sum(map(math.prod, shapes.values()))
    assert result.parameters.found == result.parameters.expected == parameters
    assert result.tensors.found == result.tensors.expected == len(shapes)
    assert result.bytes.found == 2 * parameters
    total = listed.get("metadata", {}).get("total_size")
    assert total is None or total == 2 * parameters + old * 128  # a buffer is 64 numbers of two bytes


@pytest.mark.parametrize(
    ("name", "model"),
    [("llama-3.1-8b-modelstock", "llama3.1-8b"), ("llama-3.2-3b", "meta-llama/Llama-3.2-3B")],
)
def test_it_is_the_catalogued_model_too(
    name: str, model: str, shared: Path, tmp_path: Path, check: Check
) -> None:
    written(shared, name, tmp_path / "c")
    assert check(tmp_path / "c", model=model).findings == ()
    assert check(tmp_path / "c", model="llama3.1-70b").exit_code == 1


def test_a_published_checkpoint_that_stores_its_tied_head(shared: Path, tmp_path: Path, check: Check) -> None:
    """Gemma's 164 tensors with a copy of the embedding: 256,000 × 2,048 × 2 bytes."""
    written(shared, "gemma-2b@27b76a6", tmp_path / "c")
    result = check(tmp_path / "c")
    [finding] = result.findings
    assert (finding.code, finding.exit_code, finding.tensor) == ("redundant", 0, "lm_head.weight")
    assert f"{256_000 * 2_048 * 2:,} bytes" in finding.message
    assert result.parameters.found == result.parameters.expected == 2_506_172_416


def test_a_published_checkpoint_without_the_prefix(shared: Path, tmp_path: Path, check: Check) -> None:
    """BLOOM's files are of the bare model: `h.0.…` where transformers now saves `transformer.h.0.…`."""
    listed = written(shared, "bloom", tmp_path / "c", bare="transformer.")
    result = check(tmp_path / "c")
    assert [finding.exit_code for finding in result.findings] == [0] * len(result.findings)
    assert result.tensors.found == result.tensors.expected == len(listed["weight_map"])
    assert result.bytes.found == 2 * result.parameters.found == listed["metadata"]["total_size"]


def test_another_architecture_says_so(tmp_path: Path, check: Check) -> None:
    result = check(save(tmp_path / "c", {"w": T((2, 2))}, config={"model_type": "bert", "hidden_size": 2}))
    [finding] = result.findings
    assert (finding.code, finding.exit_code) == ("config", 2)
    assert "model_type 'bert' is an encoder" in finding.message
    assert (result.parameters.expected, result.model) == (None, None)


LARGEST = {
    "hidden_size": 16_384,
    "intermediate_size": 53_248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "vocab_size": 128_256,
    "tie_word_embeddings": False,
}


def test_the_405b_in_191_shards(tmp_path: Path, check: Check) -> None:
    tensors = hub(LARGEST)
    files = shards(tensors, 191)
    folder = save(tmp_path / "c", files, config=None, listed=index(files))
    result = check(folder, model="llama3.1-405b:bf16-mp8")
    assert result.findings == ()
    assert result.tensors.found == len(tensors) == 1_137
    assert (result.parameters.found, result.bytes.found) == (405_853_388_800, size(tensors))
    assert sum(path.stat().st_blocks * 512 for path in folder.iterdir()) < 10**7, "the numbers are a hole"
    (folder / "model-00100-of-00191.safetensors").unlink()
    missing = check(folder, model="llama3.1-405b:bf16-mp8").findings
    assert [(finding.code, finding.count) for finding in missing] == [
        ("missing", len(files["model-00100-of-00191.safetensors"]))
    ]
