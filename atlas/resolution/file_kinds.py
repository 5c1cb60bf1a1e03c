"""Recognises files that are often given in place of a configuration: what the file is, and which command takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from atlas.errors import ConfigError

_SIGNATURE_BYTES = 64

_TORCH = "a PyTorch checkpoint (pickle)"
_BY_SUFFIX = {
    ".gguf": "GGUF",
    ".safetensors": "safetensors",
    ".bin": _TORCH,
    ".pth": _TORCH,
    ".pt": _TORCH,
    ".ckpt": _TORCH,
}
_COMPANIONS = {
    "generation_config.json": "generation settings",
    "tokenizer_config.json": "a tokenizer's configuration",
    "special_tokens_map.json": "a tokenizer's special tokens",
    "preprocessor_config.json": "a preprocessor's configuration",
    "hf_quant_config.json": "a quantisation's configuration",
    "vocab.json": "a tokenizer's vocabulary",
}


def refuse_weights(path: Path) -> None:
    """Refuse a file of weights, by its first bytes or else its name.

    Raises:
        ConfigError: it is one; the message names the kind, and the hint a command that takes it.
    """
    try:
        if not path.is_file():
            return
        with path.open("rb") as file:
            first = file.read(_SIGNATURE_BYTES)
    except OSError:
        return  # reading the file reports the reason
    kind = _BY_SUFFIX.get(path.suffix.lower(), "")
    if first.startswith(b"GGUF"):
        kind = "GGUF"
    elif first[8:10] == b'{"' and first[:1] != b"{":
        kind = "safetensors"
    elif first.startswith((b"PK\x03\x04", b"\x80\x02")):
        kind = _TORCH
    config = f"give its folder, {path.parent}, or a config.json"
    if kind == "GGUF":
        sound = "" if first.startswith(b"GGUF") else ", by its name (its first bytes are not GGUF)"
        raise ConfigError(
            f"{path} is a GGUF file{sound}, not a configuration, and GGUF is not read yet",
            hint="give the config.json or the Hub id of the model it was converted from",
        )
    if kind == "safetensors":
        raise ConfigError(
            f"{path} is a safetensors file, which contains weights and no configuration",
            hint=f"`atlas verify {path}` checks it; for counts {config}",
        )
    if kind:
        raise ConfigError(
            f"{path} is {kind}, not a configuration, and is not read", hint=f"for counts {config}"
        )


def refuse_other_json(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse a JSON file that is known to be something other than a model's configuration.

    Raises:
        ConfigError: it is; the message names the kind, and the hint a command that takes it.
    """
    config = f"give its folder, {path.parent}"
    if isinstance(settings.get("weight_map"), Mapping):
        raise ConfigError(
            f"{path} is an index of weights (it has a weight_map), not a configuration",
            hint=f"`atlas verify {path}` checks the checkpoint; for counts {config}",
        )
    if "model_type" in settings:
        return
    if isinstance(settings.get("model"), Mapping) and "added_tokens" in settings:
        raise ConfigError(
            f"{path} is a tokenizer, not a configuration",
            hint=f"`atlas run MODEL --tokenizer {path}` uses it; for counts {config}",
        )
    if "peft_type" in settings:
        base = settings.get("base_model_name_or_path")
        named = f": {base[:100]!r}" if isinstance(base, str) and base else ""
        raise ConfigError(
            f"{path} is the configuration of an adapter, not of a model",
            hint=f"give the model that it adapts{named}",
        )
    if path.name in _COMPANIONS:
        raise ConfigError(f"{path} is {_COMPANIONS[path.name]}, not a model's configuration", hint=config)


def only_weights(folder: Path) -> str:
    """For a folder without a configuration: which weights it contains, as a clause; empty if none."""
    kinds = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            kind = _BY_SUFFIX.get(os.path.splitext(entry.name)[1].lower())
            if kind:
                kinds.add(f"{kind} files" if kind != _TORCH else "PyTorch files (pickle)")
    return " and ".join(sorted(kinds))
