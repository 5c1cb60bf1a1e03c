"""Safetensors files with values in them, byte by byte."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.verify.checkpoints import Tensors

ONE = {"BF16": b"\x80\x3f", "F16": b"\x00\x3c", "F32": b"\x00\x00\x80\x3f", "U8": b"\x01"}


class Stored(NamedTuple):
    """A tensor and its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


def write(path: Path, tensors: Mapping[str, Stored], *, start: int = 0) -> int:
    """Write a file whose data starts at a byte that is `start` modulo 8; where that is."""
    header, end = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + len(data)]}
        end += len(data)
    raw = json.dumps(header).encode()
    raw += b" " * ((start - len(raw)) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(raw)) + raw + b"".join(data for _, _, data in tensors.values()))
    return 8 + len(raw)


def words(count: int, size: int, planted: Mapping[int, int], filler: int = 0) -> bytes:
    """So many little-endian words of `size` bytes, all `filler`, but those planted: position -> bit pattern."""
    data = bytearray(filler.to_bytes(size, "little") * count)
    for position, bits in planted.items():
        data[position * size : (position + 1) * size] = bits.to_bytes(size, "little")
    return bytes(data)


def ones(tensors: Tensors) -> dict[str, Stored]:
    """These tensors with 1 everywhere."""
    return {
        name: Stored(dtype, shape, ONE[dtype] * math.prod(shape)) for name, (shape, dtype) in tensors.items()
    }
