"""Checkpoints made for tests: real headers at any size, and no numbers behind them (sparse files).

Names and shapes are written out here once more, from the configuration's own keys, and not taken from the atlas.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

TOKENIZER: dict[str, Any] = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 2, "content": "</s>"}],
}
"""One of three tokens, so that a folder has all that a release needs."""

BYTES = {"BF16": 2, "F16": 2, "F32": 4, "U8": 1, "U32": 4, "F8_E4M3": 1}

CONFIG: dict[str, Any] = {
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
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
"""A small Llama, every size different: heads are 4 wide, queries 48 rows, keys and values 24."""

PARAMS: dict[str, Any] = {
    "dim": 48,
    "n_layers": 3,
    "n_heads": 12,
    "n_kv_heads": 6,
    "vocab_size": 100,
    "multiple_of": 8,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
"""The same in Meta's words, but for the feed-forward: 2/3 of 4 × 48 is 128, already a multiple of 8."""


class T(NamedTuple):
    """A tensor to be written."""

    shape: tuple[int, ...]
    dtype: str = "BF16"

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * BYTES[self.dtype]


Tensors = dict[str, T]


def hub(config: Mapping[str, Any] = CONFIG, dtype: str = "BF16") -> Tensors:
    """The tensors of a config.json by the Hub's names."""
    d, f, v = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    heads = config["num_attention_heads"]
    width = config.get("head_dim") or d // heads
    q, kv = heads * width, (config.get("num_key_value_heads") or heads) * width
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (v, d)}
    for i in range(config["num_hidden_layers"]):
        shapes |= {
            f"model.layers.{i}.input_layernorm.weight": (d,),
            f"model.layers.{i}.self_attn.q_proj.weight": (q, d),
            f"model.layers.{i}.self_attn.k_proj.weight": (kv, d),
            f"model.layers.{i}.self_attn.v_proj.weight": (kv, d),
            f"model.layers.{i}.self_attn.o_proj.weight": (d, q),
            f"model.layers.{i}.post_attention_layernorm.weight": (d,),
            f"model.layers.{i}.mlp.gate_proj.weight": (f, d),
            f"model.layers.{i}.mlp.up_proj.weight": (f, d),
            f"model.layers.{i}.mlp.down_proj.weight": (d, f),
        }
    shapes["model.norm.weight"] = (d,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (v, d)
    return {name: T(shape, dtype) for name, shape in shapes.items()}


def meta(params: Mapping[str, Any] = PARAMS, ffn: int = 128, dtype: str = "BF16") -> Tensors:
    """The tensors of a params.json by Meta's names."""
    d, v = params["dim"], params["vocab_size"]
    q, kv = d, params["n_kv_heads"] * (d // params["n_heads"])
    shapes: dict[str, tuple[int, ...]] = {"tok_embeddings.weight": (v, d)}
    for i in range(params["n_layers"]):
        shapes |= {
            f"layers.{i}.attention_norm.weight": (d,),
            f"layers.{i}.attention.wq.weight": (q, d),
            f"layers.{i}.attention.wk.weight": (kv, d),
            f"layers.{i}.attention.wv.weight": (kv, d),
            f"layers.{i}.attention.wo.weight": (d, q),
            f"layers.{i}.ffn_norm.weight": (d,),
            f"layers.{i}.feed_forward.w1.weight": (ffn, d),
            f"layers.{i}.feed_forward.w2.weight": (d, ffn),
            f"layers.{i}.feed_forward.w3.weight": (ffn, d),
        }
    shapes |= {"norm.weight": (d,), "output.weight": (v, d)}
    return {name: T(shape, dtype) for name, shape in shapes.items()}


CUT_ROWS = ("wq.", "wk.", "wv.", "w1.", "w3.", "output.", "tok_embeddings.")
CUT_COLUMNS = ("wo.", "w2.")


def share(tensors: Tensors, devices: int, embedding_by_columns: bool = False) -> Tensors:
    """One device's share of Meta's tensors, as its model-parallel layers cut them; every device's is alike."""
    found = {}
    for name, (shape, dtype) in tensors.items():
        columns = any(word in name for word in CUT_COLUMNS) or ("tok_emb" in name and embedding_by_columns)
        if columns:
            shape = (shape[0], shape[1] // devices)
        elif any(word in name for word in CUT_ROWS):
            shape = (shape[0] // devices, *shape[1:])
        found[name] = T(shape, dtype)
    return found


def parameters(tensors: Tensors) -> int:
    return sum(math.prod(tensor.shape) for tensor in tensors.values())


def size(tensors: Tensors) -> int:
    return sum(tensor.bytes for tensor in tensors.values())


def write(path: Path, tensors: Mapping[str, T], *, cut: int = 0, extra: int = 0) -> None:
    """A safetensors file whose data is a hole; `cut` bytes too short, or `extra` too long."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.bytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [begin, end]}
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(raw)) + raw)
        file.truncate(8 + len(raw) + end - cut + extra)


def shards(tensors: Tensors, count: int, first: int = 1, stem: str = "model") -> dict[str, Tensors]:
    """The tensors over several files, in order, as evenly as they come."""
    names = list(tensors)
    return {
        f"{stem}-{i + first:05d}-of-{count:05d}.safetensors": {
            name: tensors[name] for name in names[i * len(names) // count : (i + 1) * len(names) // count]
        }
        for i in range(count)
    }


def index(files: Mapping[str, Tensors], total_size: Any = None) -> dict[str, Any]:
    """The index of such files."""
    held = sum(size(tensors) for tensors in files.values())
    return {
        "metadata": {"total_size": held if total_size is None else total_size},
        "weight_map": {name: file for file, tensors in files.items() for name in tensors},
    }


def save(
    folder: Path,
    files: Mapping[str, Tensors] | Tensors,
    *,
    config: Mapping[str, Any] | None = CONFIG,
    params: Mapping[str, Any] | None = None,
    listed: bool | Mapping[str, Any] = False,
) -> Path:
    """A checkpoint's folder: one model.safetensors, or these files, and the index of them where `listed`."""
    folder.mkdir(parents=True, exist_ok=True)
    named: Mapping[str, Any] = files if _are_files(files) else {"model.safetensors": files}
    for name, tensors in named.items():
        write(folder / name, tensors)
    if listed:
        dump(folder / "model.safetensors.index.json", index(named) if listed is True else listed)
    dump(folder / "tokenizer.json", TOKENIZER)
    if config is not None:
        dump(folder / "config.json", config)
    if params is not None:
        dump(folder / "params.json", params)
    return folder


def dump(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _are_files(files: Iterable[str]) -> bool:
    return all(name.endswith(".safetensors") for name in files)


def pointer(size: int = 207_840) -> bytes:
    """What Git LFS leaves in place of a file."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize {size}\n".encode()
