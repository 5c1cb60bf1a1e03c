"""Bytes of small checkpoints, made by hand: what the tests put on the fake Hub."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable

from tests.hub.fake_hub import File

CONFIG = b'{"model_type": "llama"}'


def safetensors(names: Iterable[str], *, metadata: int = 0) -> bytes:
    """A sound file of four numbers a tensor, with so many bytes of metadata in its header."""
    entries: dict[str, object] = {"__metadata__": {"note": "x" * metadata}} if metadata else {}
    end = 0
    for name in names:
        entries[name] = {"dtype": "F32", "shape": [4], "data_offsets": [end, end + 16]}
        end += 16
    raw = json.dumps(entries, separators=(",", ":")).encode()
    return struct.pack("<Q", len(raw)) + raw + bytes(end)


def shard(number: int, total: int) -> str:
    return f"model-{number:05}-of-{total:05}.safetensors"


def sharded(total: int, tensors: int = 5) -> dict[str, bytes | File]:
    """A configuration, an index, and shards of some tensors each."""
    files: dict[str, bytes | File] = {"config.json": CONFIG}
    places = {}
    for number in range(1, total + 1):
        names = [f"model.layers.{number}.part.{i}.weight" for i in range(tensors)]
        files[shard(number, total)] = safetensors(names)
        places |= dict.fromkeys(names, shard(number, total))
    files["model.safetensors.index.json"] = json.dumps(
        {"metadata": {}, "weight_map": places}, indent=2
    ).encode()
    return files


ONE = {"config.json": CONFIG, "model.safetensors": safetensors(["a", "b"])}
