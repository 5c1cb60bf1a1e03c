"""Dtypes: the codes of safetensors, their width in bits, and their other names (torch, config.json).

Codes and widths are those of the safetensors format, version 0.8 (its `Dtype` enum), which includes
four types narrower than a byte; their tensors must still end on a whole byte.
"""

from __future__ import annotations

from atlas.errors import UsageError

BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}

ACTIVATIONS = ("F32", "F16", "BF16")
"""The dtypes in which engines compute activations, and by default cache keys and values."""

# Other names: of torch, of configurations, and common abbreviations.
_ALIASES = {
    "bfloat16": "BF16",
    "float16": "F16",
    "half": "F16",
    "fp16": "F16",
    "float32": "F32",
    "float": "F32",
    "fp32": "F32",
    "float64": "F64",
    "double": "F64",
    "int8": "I8",
    "uint8": "U8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "long": "I64",
    "uint64": "U64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e8m0fnu": "F8_E8M0",
    "fp8": "F8_E4M3",
}


def find(name: str) -> str | None:
    """The code of a dtype's name, in any case, with or without `torch.`; None if no dtype has that name."""
    plain = name.strip().removeprefix("torch.")
    if plain.upper() in BITS:
        return plain.upper()
    return _ALIASES.get(plain.lower())


def code(name: str) -> str:
    """The code of a dtype's name.

    Raises:
        UsageError: no dtype is called that.
    """
    known = find(name)
    if known is None:
        raise UsageError(
            f"no dtype is called {name!r}",
            hint=f"use one of {', '.join(BITS)}, or torch's name such as bfloat16",
        )
    return known


def of_activations(stored: str) -> str:
    """The dtype of the activations of a model whose weights are stored in that dtype: BF16 unless it is one of `ACTIVATIONS`."""
    return stored if stored in ACTIVATIONS else "BF16"


def size_bytes(dtype: str, elements: int) -> int:
    """The bytes that many elements take, rounded up to a whole byte for the types narrower than one."""
    return (elements * BITS[dtype] + 7) // 8
