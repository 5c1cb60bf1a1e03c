"""Break one thing in a good checkpoint and get exactly that finding: its code, its weight, its count and its words.

The good one is the small Llama of `checkpoints.py`: 30 tensors, 9 in each of 3 layers, 65,232 parameters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from atlas.checkpoint.findings import CODES
from tests.verify.checkpoints import (
    CONFIG,
    PARAMS,
    T,
    Tensors,
    dump,
    hub,
    index,
    meta,
    pointer,
    save,
    shards,
    share,
    write,
)
from tests.verify.conftest import Check

GOOD = hub()
TIED = CONFIG | {"tie_word_embeddings": True}
THREE = shards(GOOD, 3)
SECOND = "model-00002-of-00003.safetensors"
INDEX = "model.safetensors.index.json"
UNSTATED = {key: value for key, value in CONFIG.items() if key != "torch_dtype"}


def without(tensors: Tensors, *words: str) -> Tensors:
    return {name: tensor for name, tensor in tensors.items() if not any(word in name for word in words)}


def changed(
    tensors: Tensors, word: str, shape: tuple[int, ...] | None = None, dtype: str | None = None
) -> Tensors:
    return {
        name: T(shape or tensor.shape, dtype or tensor.dtype) if word in name else tensor
        for name, tensor in tensors.items()
    }


def renamed(old: str, new: str, tensors: Tensors = GOOD) -> Tensors:
    return {name.replace(old, new): tensor for name, tensor in tensors.items()}


def prefixed(prefix: str, tensors: Tensors = GOOD) -> Tensors:
    return {prefix + name: tensor for name, tensor in tensors.items()}


def model(tensors: Tensors, config: Mapping[str, Any] = CONFIG) -> Callable[[Path], object]:
    return lambda folder: save(folder, tensors, config=config)


def sharded(listed: Any = True, files: Mapping[str, Tensors] = THREE) -> Callable[[Path], object]:
    return lambda folder: save(folder, files, listed=listed)


def without_file(*names: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        save(folder, THREE, listed=True)
        for name in names:
            (folder / name).unlink()

    return make


def with_bytes(
    name: str, data: bytes, make: Callable[[Path], object] | None = None
) -> Callable[[Path], object]:
    def made(folder: Path) -> None:
        (make or sharded())(folder)
        (folder / name).write_bytes(data)

    return made


def rewritten(**how: int) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        save(folder, GOOD)
        write(folder / "model.safetensors", GOOD, **how)

    return make


def strange_header() -> bytes:
    """Every dtype as torch writes it."""
    entries = {
        name: {"dtype": "bf16", "shape": list(tensor.shape), "data_offsets": [0, 0]}
        for name, tensor in GOOD.items()
    }
    raw = json.dumps(entries).encode()
    return len(raw).to_bytes(8, "little") + raw


def dangling(folder: Path) -> None:
    save(folder, THREE, listed=True)
    (folder / SECOND).unlink()
    (folder / SECOND).symlink_to("../../blobs/4d7a")


def placed(name: str, file: str | None) -> dict[str, Any]:
    """The index of three shards, with one tensor placed elsewhere, or not at all."""
    listed = json.loads(json.dumps(index(THREE)))
    if file is None:
        del listed["weight_map"][name]
    else:
        listed["weight_map"][name] = file
    return listed


def adapter(folder: Path) -> None:
    save(folder, {"adapter_model.safetensors": {"base_model.model.q.lora_A.weight": T((8, 48))}}, config=None)
    dump(
        folder / "adapter_config.json",
        {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.2-1B"},
    )


def devices(count: int, of: int, names: Tensors | None = None) -> Callable[[Path], object]:
    """The first files of Meta's model-parallel checkpoint."""
    cut = share(names or meta(), of)
    return lambda folder: save(
        folder, {f"consolidated.{i:02d}.safetensors": cut for i in range(count)}, config=None, params=PARAMS
    )


def uneven(change: Callable[[Tensors], Tensors]) -> Callable[[Path], object]:
    cut = share(meta(), 2)
    files = {"consolidated.00.safetensors": cut, "consolidated.01.safetensors": change(cut)}
    return lambda folder: save(folder, files, config=None, params=PARAMS)


def attention_biases() -> Tensors:
    rows = {"q": 48, "k": 24, "v": 24, "o": 48}
    return {f"model.layers.{i}.self_attn.{p}_proj.bias": T((rows[p],)) for i in range(3) for p in rows}


@dataclass(frozen=True)
class Break:
    """What is made, and the one finding it must give."""

    make: Callable[[Path], object]
    code: str
    words: tuple[str, ...]
    count: int = 1
    severity: str = "error"
    exit_code: int = 1
    tensor: str | None = None
    expected: object = None
    found: object = None


def note(code: str, words: tuple[str, ...], make: Callable[[Path], object], count: int = 1) -> Break:
    return Break(make, code, words, count, "note", 0)


LAYER = "18,528 parameters"  # 2 norms of 48, q and o of 48 × 48, k and v of 24 × 48, three of 80 × 48
assert 2 * 48 + 2 * 48 * 48 + 2 * 24 * 48 + 3 * 80 * 48 == 18_528

BREAKS = {
    # ---- files
    "a pointer": Break(
        with_bytes("model.safetensors", pointer(207_840), model(GOOD)),
        "pointer",
        ("model.safetensors", "Git LFS pointer", "207,840 bytes", "git lfs pull"),
        exit_code=2,
        expected=207_840,
    ),
    "a pointer among shards": Break(
        with_bytes(SECOND, pointer()), "pointer", (SECOND, "Git LFS pointer"), exit_code=2
    ),
    "a web page": Break(
        with_bytes("model.safetensors", b"<!doctype html><title>Sign in</title>", model(GOOD)),
        "pointer",
        ("web page", "Sign in"),
        exit_code=2,
    ),
    "an empty file": Break(
        with_bytes("model.safetensors", b"", model(GOOD)),
        "header",
        ("model.safetensors", "empty"),
        exit_code=2,
    ),
    "a header that is not JSON": Break(
        with_bytes(SECOND, b"\x10" + bytes(7) + b"{" + b"x" * 15), "header", (SECOND, "not JSON"), exit_code=2
    ),
    "an adapter": Break(
        adapter,
        "adapter",
        (
            "this is a LoRA adapter for meta-llama/Llama-3.2-1B, not a full model",
            "merge it or check the base model",
        ),
        exit_code=2,
    ),
    "a dtype nobody knows, in each tensor": Break(
        with_bytes("model.safetensors", strange_header(), model(GOOD)),
        "header",
        ("'bf16'", "safetensors writes BF16", "29 more tensors"),
        count=30,
        exit_code=2,
    ),
    "cut short": Break(
        rewritten(cut=100), "truncated", ("model.safetensors", "truncated", "100 too few", "lm_head.weight")
    ),
    "too long": Break(rewritten(extra=7), "trailing", ("model.safetensors", "a surplus of 7")),
    "a shard missing": Break(
        without_file(SECOND),
        "missing",
        (SECOND, "which the index names", "is not there", "10 tensors", "37,152 bytes"),
        count=10,
        expected=37_152,
    ),
    "every shard missing": Break(
        without_file(*THREE), "missing", ("3 files are missing", "30 tensors", "130,464 bytes"), count=30
    ),
    "a link that leads nowhere": Break(
        dangling, "missing", (SECOND, "a broken link", "10 tensors"), count=10
    ),
    # ---- the index
    "the index a pointer": Break(
        with_bytes(INDEX, pointer()), "index", (INDEX, "Git LFS pointer"), exit_code=2
    ),
    "two documents in a row": Break(
        with_bytes(INDEX, json.dumps(index(THREE)).encode() * 2),
        "index",
        (INDEX, "two JSON documents in a row"),
        exit_code=2,
    ),
    "an empty weight_map": Break(
        with_bytes(INDEX, b'{"weight_map": {}}'), "index", ("weight_map", "found {}"), exit_code=2
    ),
    "no weight_map": Break(with_bytes(INDEX, b"{}"), "index", ("weight_map", "it is absent"), exit_code=2),
    "an index that is a list": Break(with_bytes(INDEX, b"[]"), "index", ("the index is []",), exit_code=2),
    "an index that is not JSON": Break(
        with_bytes(INDEX, b'{"weight_map": '), "index", ("not JSON", "line 1, column 16"), exit_code=2
    ),
    "a tensor in another shard": Break(
        sharded(placed("model.norm.weight", "model-00001-of-00003.safetensors")),
        "index",
        (
            "'model.norm.weight' in model-00001-of-00003.safetensors",
            "but it is in model-00003-of-00003",
        ),
    ),
    "a tensor in no shard": Break(
        sharded(placed("extra.weight", SECOND)),
        "index",
        ("'extra.weight' in", SECOND, "no file has it"),
    ),
    "a tensor the index lost": Break(
        sharded(index(THREE), THREE | {SECOND: without(THREE[SECOND], "layers.1.mlp.up")}),
        "index",
        ("'model.layers.1.mlp.up_proj.weight' in", SECOND, "no file has it"),
    ),
    "a tensor not listed": Break(
        sharded(placed("model.norm.weight", None)), "index", ("does not list model.norm.weight",)
    ),
    "an index of another split": Break(
        sharded(
            index(shards(GOOD, 6)), {name.replace("-of-00003", "-of-00006"): t for name, t in THREE.items()}
        ),
        "index",
        ("3 of the files it names do not exist, but no tensor is missing",),
        count=25,  # shards of 5 over shards of 10: only the first five stay where they were
    ),
    "a wrong total_size": Break(
        sharded(index(THREE, 5)),
        "index",
        ("total_size is 5", "the tensors take 130,464 bytes"),
        severity="warning",
        exit_code=0,
        expected=130_464,
        found=5,
    ),
    "no index": Break(
        sharded(False),
        "loader",
        ("3 weight files and no index", INDEX, "transformers finds no weights"),
        count=3,
    ),
    "a tensor in two files": Break(
        sharded(index(THREE), THREE | {SECOND: THREE[SECOND] | {"lm_head.weight": GOOD["lm_head.weight"]}}),
        "duplicate",
        ("'lm_head.weight' is in", SECOND, "model-00003-of-00003.safetensors"),
    ),
    "a second copy": note(
        "stray",
        ("consolidated.safetensors", "not counted"),
        lambda folder: save(folder, THREE | {"consolidated.safetensors": meta()}, listed=index(THREE)),
    ),
    # ---- the configuration
    "a configuration that is not JSON": Break(
        with_bytes("config.json", b"{", model(GOOD)), "config", ("config.json", "not JSON"), exit_code=2
    ),
    "a field missing": Break(
        model(GOOD, {key: value for key, value in CONFIG.items() if key != "hidden_size"}),
        "config",
        ("hidden_size is missing",),
        exit_code=2,
    ),
    "no configuration": Break(
        lambda folder: save(folder, GOOD, config=None),
        "config",
        ("there is no config.json or params.json", "--model"),
        exit_code=2,
    ),
    "Meta's names beside the Hub's configuration": Break(
        model(meta(ffn=80)), "config", ("tok_embeddings.weight", "Meta's consolidated files", "params.json")
    ),
    "the Hub's names beside Meta's": Break(
        lambda folder: save(folder, hub(CONFIG | {"intermediate_size": 128}), config=None, params=PARAMS),
        "config",
        ("model.embed_tokens.weight", "only params.json is there"),
    ),
    # ---- names
    **{
        f"the prefix {prefix}": Break(
            model(prefixed(prefix)),
            "unexpected",
            (f"all 30 names begin with `{prefix}`", "without it, 30 of 30 match"),
            count=30,
            found=prefix,
        )
        for prefix in (
            "_orig_mod.",
            "module.",
            "base_model.model.",
            "language_model.",
            "any.thing.",
            "half_a_word_",
        )
    },
    "the prefix model.language_model.": Break(
        model(renamed("model.", "model.language_model.")),
        "unexpected",
        ("29 of 30 names begin with `model.language_model.`", "with `model.` instead, 30 of 30 match"),
        count=29,
    ),
    "the prefix model. lacking": Break(
        model(renamed("model.", "", hub(TIED)), TIED),
        "unexpected",
        ("all 29 names lack the prefix `model.`", "with it, 29 of 29 match"),
        count=29,
    ),
    "a word inside names": Break(
        model(renamed(".self_attn", ".self_attn._orig_mod")),
        "unexpected",
        ("12 of 30 names have `_orig_mod.` inside them", "without it, 30 of 30 match"),
        count=12,
    ),
    "another model": Break(
        model({f"transformer.h.{i}.attn.c_attn.weight": T((144, 48)) for i in range(12)}),
        "missing",
        (
            "0 of 30 expected tensors are stored",
            "model.embed_tokens.weight",
            "transformer.h.0.attn.c_attn.weight",
        ),
        count=30,
    ),
    "a file without tensors": Break(
        lambda folder: save(folder, {"model.safetensors": {}}),
        "missing",
        ("0 of 30", "no tensors at all"),
        count=30,
    ),
    "a tensor too many": Break(
        model(GOOD | {"foo.weight": T((3, 4))}),
        "unexpected",
        ("foo.weight", "[3, 4] BF16"),
        tensor="foo.weight",
        found=(3, 4),
    ),
    "a tensor too many in each layer": Break(
        model(GOOD | {f"model.layers.{i}.self_attn.q_norm.weight": T((4,)) for i in range(3)}),
        "unexpected",
        ("model.layers.*.self_attn.q_norm.weight (3 tensors)",),
        count=3,
    ),
    "a tower too many": Break(
        model(GOOD | {f"vision.{i}.{word}.weight": T((4,)) for i in range(4) for word in "abcdef"}),
        "unexpected",
        ("vision.*.a.weight", "(24 tensors)"),
        count=24,
    ),
    "a tensor missing": Break(
        model(without(GOOD, "layers.1.mlp.up")),
        "missing",
        ("model.layers.1.mlp.up_proj.weight is missing, expected [80, 48]",),
        tensor="model.layers.1.mlp.up_proj.weight",
        expected=(80, 48),
    ),
    "a tensor missing in each layer": Break(
        model(without(GOOD, "mlp.up")),
        "missing",
        ("model.layers.*.mlp.up_proj.weight is missing in layers 0–2",),
        count=3,
    ),
    # ---- layers
    "a layer missing": Break(
        model(without(GOOD, "layers.1.")), "missing", ("layer 1 is missing (9 tensors, " + LAYER,), count=9
    ),
    "num_hidden_layers too large": Break(
        model(without(GOOD, "layers.1.", "layers.2.")),
        "missing",
        ("layers 1–2 are missing (18 tensors", "complete and without a gap", "num_hidden_layers 3", "stale"),
        count=18,
        expected=3,
        found=1,
    ),
    "num_hidden_layers too small": Break(
        model(hub(CONFIG | {"num_hidden_layers": 5})),
        "unexpected",
        (
            "layers 3–4 are unexpected (18 tensors",
            "5 complete layers are stored",
            "num_hidden_layers 3",
            "stale",
        ),
        count=18,
        expected=3,
        found=5,
    ),
    "a layer too many": Break(
        model(GOOD | renamed("layers.2.", "layers.7.", {k: v for k, v in GOOD.items() if "layers.2." in k})),
        "unexpected",
        ("layer 7 is unexpected (9 tensors, " + LAYER, "num_hidden_layers in config.json is 3"),
        count=9,
    ),
    "layers counted from 1": Break(
        model(
            renamed(
                "layers.0.", "layers.1.", renamed("layers.1.", "layers.2.", renamed("layers.2.", "layers.3."))
            )
        ),
        "unexpected",
        ("layers 1–3 are stored, expected layers 0–2",),
        count=9,
    ),
    # ---- switches
    "biases stored, and switched off": Break(
        model(GOOD | attention_biases()),
        "unexpected",
        ("attention_bias is false", "q_proj.bias", "(12 tensors)"),
        count=12,
    ),
    "some of the biases stored, and switched off": Break(
        model(GOOD | {name: tensor for name, tensor in attention_biases().items() if "k_proj" in name}),
        "unexpected",
        ("attention_bias is false", "k_proj.bias", "(3 tensors)", "neither value of attention_bias matches"),
        count=3,
    ),
    "biases on, and none stored": Break(
        model(GOOD, CONFIG | {"attention_bias": True}),
        "missing",
        ("attention_bias is true", "k_proj.bias", "(12 tensors)"),
        count=12,
    ),
    # ---- tied
    "an untied head missing": Break(
        model(without(GOOD, "lm_head")),
        "tied",
        ("lm_head.weight is missing", "[100, 48]", "model.embed_tokens.weight", "tie_word_embeddings"),
        tensor="lm_head.weight",
        expected=(100, 48),
    ),
    "a stored copy of a tied head": note(
        "redundant",
        ("lm_head.weight is stored, 9,600 bytes", "tied to model.embed_tokens.weight"),
        model(GOOD, TIED),
    ),
    "old buffers": note(
        "buffer",
        ("model.layers.*.self_attn.rotary_emb.inv_freq (3 tensors)",),
        model(GOOD | {f"model.layers.{i}.self_attn.rotary_emb.inv_freq": T((2,), "F32") for i in range(3)}),
        count=3,
    ),
    "Meta's old buffer": note(
        "buffer", ("rope.freqs",), devices(2, 2, meta() | {"rope.freqs": T((2,), "F32")})
    ),
    # ---- shapes
    "a vocabulary grown": Break(
        model(hub(CONFIG | {"vocab_size": 103})),
        "shape",
        (
            "model.embed_tokens.weight and lm_head.weight: expected [100, 48], found [103, 48]",
            "only the rows differ, by +3",
            "vocab_size 100",
            "stale",
        ),
        count=2,
        expected=(100, 48),
        found=(103, 48),
    ),
    "a vocabulary grown, tied, with a copy": Break(
        model(hub(CONFIG | {"vocab_size": 103}), TIED),
        "shape",
        ("model.embed_tokens.weight and lm_head.weight", "only the rows differ"),
        count=2,
    ),
    "only one of the matrices grown": Break(
        model(changed(GOOD, "embed_tokens", (103, 48))),
        "shape",
        ("model.embed_tokens.weight: expected [100, 48], found [103, 48]; only the rows differ",),
    ),
    "keys and values with all heads": Break(
        model(hub(CONFIG | {"num_key_value_heads": 12})),
        "shape",
        (
            "model.layers.*.self_attn.k_proj.weight and model.layers.*.self_attn.v_proj.weight",
            "expected [24, 48], found [48, 48]",
            "stored with all 12 heads",
            "num_key_value_heads 6",
        ),
        count=6,
    ),
    "num_key_value_heads left out": Break(
        model(GOOD, {key: value for key, value in CONFIG.items() if key != "num_key_value_heads"}),
        "shape",
        ("expected [48, 48], found [24, 48]", "fit num_key_value_heads 6"),
        count=6,
    ),
    "intermediate_size stale": Break(
        model(hub(CONFIG | {"intermediate_size": 96})),
        "shape",
        ("mlp.gate_proj", "mlp.down_proj", "fit intermediate_size 96", "intermediate_size 80", "stale"),
        count=9,
    ),
    "head_dim stale": Break(
        model(hub(CONFIG | {"head_dim": 8})), "shape", ("q_proj", "o_proj", "fit head_dim 8"), count=12
    ),
    "hidden_size stale, and head_dim with it": Break(
        model(hub(CONFIG | {"hidden_size": 96})), "shape", ("fit hidden_size 96", "hidden_size 48"), count=30
    ),
    "a matrix transposed": Break(
        model(changed(GOOD, "layers.1.mlp.up_proj", (48, 80))),
        "shape",
        ("model.layers.1.mlp.up_proj.weight: expected [80, 48], found [48, 80]", "transposed"),
        tensor="model.layers.1.mlp.up_proj.weight",
    ),
    "every matrix transposed": Break(
        model({name: T(tensor.shape[::-1]) for name, tensor in GOOD.items()}),
        "shape",
        ("transposed", "[out, in]"),
        count=2 + 3 * 5,  # embedding and head; in a layer all but q and o, which are square
    ),
    "a shape": Break(
        model(changed(GOOD, "layers.1.mlp.up_proj", (81, 48))),
        "shape",
        ("model.layers.1.mlp.up_proj.weight: expected [80, 48], found [81, 48]",),
        expected=(80, 48),
        found=(81, 48),
    ),
    "a shape in each layer": Break(
        model(changed(GOOD, "mlp.up_proj", (81, 48))),
        "shape",
        ("model.layers.*.mlp.up_proj.weight in layers 0–2: expected [80, 48], found [81, 48]",),
        count=3,
    ),
    "another model's shapes": Break(
        model(hub(CONFIG | {"hidden_size": 96, "vocab_size": 128, "intermediate_size": 96})),
        "shape",
        ("are of another model", "vocab_size 128", "hidden_size 96", "intermediate_size 96"),
        count=30,
    ),
    # ---- dtypes
    "another dtype": Break(
        model(hub(dtype="F32")),
        "dtype",
        ("all 30 tensors are F32, and config.json states BF16",),
        count=30,
        expected="BF16",
        found="F32",
    ),
    "norms of another dtype": Break(
        model(changed(GOOD, "norm", dtype="F32")),
        "dtype",
        ("7 of 30 tensors are F32", "model.norm.weight"),
        count=7,
    ),
    "a mixture where none is stated": Break(
        model(changed(GOOD, "norm", dtype="F32"), UNSTATED),
        "dtype",
        ("mixed", "config.json states none", "23 in BF16, 7 in F32"),
        count=7,
    ),
    # ---- Meta's model-parallel files: a file holds 23 matrices cut, and 7 norms whole
    "the last share missing": Break(
        devices(1, 2), "missing", ("1 of 2 model-parallel files",), count=23, expected=2, found=1
    ),
    "shares missing": Break(devices(2, 4), "missing", ("2 of 4 model-parallel files",), count=23),
    "a share missing in between": Break(
        lambda folder: (devices(4, 4)(folder), (folder / "consolidated.02.safetensors").unlink()),
        "missing",
        ("3 of 4 model-parallel files", "consolidated.02.safetensors"),
        count=23,
    ),
    "a share that cannot be read": Break(
        with_bytes("consolidated.02.safetensors", pointer(), devices(4, 4)),
        "pointer",
        ("consolidated.02.safetensors",),
        exit_code=2,
    ),
    "a share without a matrix": Break(
        uneven(lambda cut: without(cut, "layers.1.attention.wq")),
        "missing",
        ("consolidated.01.safetensors lacks layers.1.attention.wq.weight",),
    ),
    "a share without a norm": Break(
        uneven(lambda cut: without(cut, "layers.1.ffn_norm")),
        "missing",
        ("consolidated.01.safetensors lacks layers.1.ffn_norm.weight",),
    ),
    "norms that differ": Break(
        uneven(lambda cut: changed(cut, "layers.1.ffn_norm", (24,))),
        "shape",
        ("layers.1.ffn_norm.weight: expected [48], found [24] in consolidated.01.safetensors",),
    ),
    "a norm cut as if it were a matrix": Break(
        devices(2, 2, changed(meta(), "layers.1.ffn_norm", (24,))),
        "shape",
        ("layers.1.ffn_norm.weight: expected [48], found [24]",),
    ),
    "a vocabulary grown, in shares": Break(
        devices(2, 2, meta(PARAMS | {"vocab_size": 104})),
        "shape",
        ("tok_embeddings.weight and output.weight: expected [100, 48], found [104, 48]", "vocab_size 100"),
        count=2,
    ),
    "shares of two dtypes": Break(
        uneven(lambda cut: changed(cut, "wq", dtype="F32")),
        "dtype",
        ("57 shares in BF16, 3 in F32", "attention.wq.weight in consolidated.01"),
        count=3,
    ),
    "a prefix in every share": Break(
        devices(2, 2, prefixed("module.", meta())),
        "unexpected",
        ("all 30 names begin with `module.`",),
        count=30,
    ),
}


@pytest.mark.parametrize("broken", BREAKS.values(), ids=BREAKS.keys())
def test_one_cause_is_one_finding(broken: Break, tmp_path: Path, check: Check) -> None:
    broken.make(tmp_path / "c")
    result = check(tmp_path / "c")
    assert [finding.code for finding in result.findings] == [broken.code]
    finding = result.findings[0]
    for words in broken.words:
        assert words in finding.message
    assert (finding.severity, finding.exit_code, finding.count) == (
        broken.severity,
        broken.exit_code,
        broken.count,
    )
    assert result.exit_code == broken.exit_code
    verdicts = ("verified", "differs", "not described" if "--model" in broken.words else "unreadable")
    assert result.verdict == verdicts[broken.exit_code]
    for name in ("tensor", "expected", "found"):
        if getattr(broken, name) is not None:
            assert getattr(finding, name) == getattr(broken, name)


def test_every_code_that_takes_no_weights_to_see_is_broken_above() -> None:
    takes_weights = {"nonfinite", "hash", "zero"}
    elsewhere = {"offsets", "quantisation", "release", "loader", "apart"}  # below, and in files of their own
    assert {broken.code for broken in BREAKS.values()} | elsewhere == set(CODES) - takes_weights


def test_offsets_that_contradict_each_other(tmp_path: Path, check: Check) -> None:
    save(tmp_path / "c", GOOD)
    path = tmp_path / "c" / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"shape": [48]', b'"shape": [40]', 1))
    result = check(tmp_path / "c")  # that the shape is not the declared one has the same cause
    assert [(finding.code, finding.exit_code) for finding in result.findings] == [("offsets", 1)]


def test_all_that_is_wrong_is_said_and_the_highest_exit_wins(tmp_path: Path, check: Check) -> None:
    """A pointer, a matrix that is missing, one of another dtype and a stray at once."""
    files = shards(changed(without(GOOD, "model.layers.0.mlp.up"), "embed_tokens", dtype="F32"), 3)
    save(tmp_path / "c", files | {"consolidated.safetensors": meta()}, listed=index(files))
    (tmp_path / "c" / "model-00003-of-00003.safetensors").write_bytes(pointer())
    result = check(tmp_path / "c")
    assert [finding.code for finding in result.findings] == ["pointer", "missing", "dtype", "stray"]
    assert [finding.exit_code for finding in result.findings] == [2, 1, 1, 0]
    assert result.exit_code == 2


def test_two_causes_are_two_findings(tmp_path: Path, check: Check) -> None:
    """A prefix, and behind it a grown vocabulary and a layer too few."""
    save(tmp_path / "c", prefixed("_orig_mod.", without(hub(CONFIG | {"vocab_size": 101}), "layers.1.")))
    findings = check(tmp_path / "c").findings
    assert [(finding.code, finding.count) for finding in findings] == [
        ("unexpected", 21),
        ("missing", 9),
        ("shape", 2),
    ]


def test_a_shard_missing_and_no_index_to_say_so(tmp_path: Path, check: Check) -> None:
    """The others' numbers say so; that there is no index is another matter."""
    save(tmp_path / "c", THREE)
    (tmp_path / "c" / SECOND).unlink()
    result = check(tmp_path / "c")
    assert [(finding.code, finding.count) for finding in result.findings] == [("loader", 2), ("missing", 10)]
    assert SECOND in result.findings[1].message


def test_a_number_left_out_is_nothing_where_no_tensor_is_missing(tmp_path: Path, check: Check) -> None:
    files = {name.replace("00003.s", "00004.s"): tensors for name, tensors in THREE.items()}
    result = check(save(tmp_path / "c", files))
    assert [(finding.code, finding.severity) for finding in result.findings] == [("loader", "error")]
