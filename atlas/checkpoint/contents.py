"""Which files of a folder are the model, by their names, where there is no index.

A folder may hold several copies of the weights: a whole file and the shards it was made from, Meta's `consolidated` files
and the Hub's, a half precision copy. One series of files is the model; the others are strays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from atlas.checkpoint.adapter import is_adapter
from atlas.checkpoint.findings import listing
from atlas.errors import CheckpointError

SUFFIX = ".safetensors"
INDEX = "model.safetensors.index.json"
CONFIGURATIONS = ("config.json", "params.json")

_PICKLES = (".bin", ".pth", ".pt", ".ckpt")
_OTHERS = (".gguf", ".h5", ".msgpack", ".onnx")
# Pickles that training writes next to the weights.
_STATE = re.compile(r"training_args|optimizer|scheduler|rng_state|random_states|scaler")
_SHARD = re.compile(r"(?P<stem>.+?)[-_.](?P<number>\d{1,5})(?:[-_]of[-_](?P<total>\d{1,5}))?\.safetensors")


_ELSEWHERE = "look for the same weights as .safetensors"


@dataclass(frozen=True, slots=True)
class Series:
    """Files that make one model together.

    Attributes:
        files: in the order of their numbers.
        shares: each file holds a tensor-parallel share of every matrix, as Meta's model-parallel files do.
        absent: files that are missing from the numbering of the others.
    """

    files: tuple[str, ...]
    shares: bool = False
    absent: tuple[str, ...] = ()


def weights(names: Iterable[str]) -> list[str]:
    """The safetensors files, without those of an adapter."""
    return [name for name in names if name.endswith(SUFFIX) and not is_adapter(name)]


def other_weights(names: Iterable[str]) -> list[str]:
    """Weights in formats that the atlas does not read."""
    return [name for name in names if name.endswith((*_PICKLES, *_OTHERS)) and not _STATE.match(name)]


def refusal(location: str, names: Iterable[str]) -> CheckpointError:
    """The error for a folder without safetensors files: what is there instead, and what to try."""
    names = list(names)
    others = other_weights(names)
    if not others:
        there = f"only {listing(names)}" if names else "it holds no files"
        return CheckpointError(
            f"{location}: there are no weights: {there}",
            hint="give the folder that holds the .safetensors files",
        )
    what = f"{location}: there are no safetensors weights, only {listing(others)}"
    if not any(name.endswith(_PICKLES) for name in others):
        gguf = any(name.endswith(".gguf") for name in others)
        if gguf:
            what = f"{location}: this is a GGUF model ({listing(others)}) without safetensors weights"
        hint = "GGUF is llama.cpp's; check the safetensors that it was converted from" if gguf else _ELSEWHERE
        return CheckpointError(f"{what}: a format that is not read", hint=hint)
    if any(name.startswith("consolidated.") for name in others):
        hint = "Meta publishes the same weights as safetensors on the Hub; transformers' convert_llama_weights_to_hf.py "
        hint += "converts these"
    else:
        hint = f"{_ELSEWHERE}, or convert them: transformers' from_pretrained(…) reads them, save_pretrained(…) writes "
        hint += "safetensors"
    return CheckpointError(
        f"{what}: pickles, which can run code when they are opened and are not read", hint=hint
    )


def index_of(names: Collection[str]) -> str | None:
    """The index that loaders use: the usual name, else the only one there is."""
    found = [name for name in names if name.endswith(SUFFIX + ".index.json") and not is_adapter(name)]
    return INDEX if INDEX in found else found[0] if len(found) == 1 else None


def series(files: Collection[str]) -> Series:
    """The files of the model where there is no index: the whole file, else shards, else all."""
    if "model" + SUFFIX in files:
        return Series(("model" + SUFFIX,))
    numbered: dict[tuple[str, str | None], dict[int, re.Match[str]]] = {}
    for name in sorted(files):
        if shard := _SHARD.fullmatch(name):
            numbered.setdefault((shard["stem"], shard["total"]), {})[int(shard["number"])] = shard
    for stem in ("model", "consolidated"):
        for (known, total), shards in numbered.items():
            if known == stem:
                shares = stem == "consolidated" and total is None
                return Series(_names(shards), shares, _absent(shards, total) if shares or total else ())
    if "consolidated" + SUFFIX in files:
        return Series(("consolidated" + SUFFIX,))
    if len(numbered) == 1:
        ((_, total), shards) = next(iter(numbered.items()))
        if len(shards) == len(files) and total is not None:
            return Series(_names(shards), absent=_absent(shards, total))
    return Series(tuple(sorted(files)))


def _names(shards: dict[int, re.Match[str]]) -> tuple[str, ...]:
    return tuple(shards[i].string for i in sorted(shards))


def _absent(shards: dict[int, re.Match[str]], total: str | None) -> tuple[str, ...]:
    """The missing numbers: they start at 0 where a file has number 0 or no total is stated, else at 1."""
    first = 0 if 0 in shards or total is None else 1
    stop = max(shards) + 1 if total is None else first + int(total)
    some = next(iter(shards.values()))
    start, end = some.span("number")
    return tuple(
        f"{some.string[:start]}{i:0{end - start}d}{some.string[end:]}"
        for i in range(first, stop)
        if i not in shards
    )
