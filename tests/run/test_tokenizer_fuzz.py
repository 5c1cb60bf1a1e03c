"""Mutated tokenizer files, as JSON and as bytes, and mutated settings beside them: ids or an AtlasError, never more.

ATLAS_FUZZ_EXAMPLES sets how many of each kind are drawn, and draws anew each time. Each starts a process.
"""
# ruff: noqa: E402  what needs tokenizers is imported after the question whether it is there

from __future__ import annotations

import copy
import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip(
    "tokenizers", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from atlas.errors import AtlasError
from atlas.execution import tokenizer_process
from atlas.execution.options import Options
from atlas.execution.prompt import PromptReader

EXAMPLES = int(os.environ.get("ATLAS_FUZZ_EXAMPLES", "25"))
SEED = None if "ATLAS_FUZZ_EXAMPLES" in os.environ else 0
SECONDS = 10
SETTINGS = {
    "bos_token": "<bos>",
    "eos_token": {"content": "<eos>", "lstrip": False},
    "add_bos_token": True,
    "bos_token_id": 256,
    "eos_token_id": [257, 3],
}


def small() -> dict[str, Any]:
    """A byte-level BPE with every kind of part that a large one has."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {letter: i for i, letter in enumerate(letters)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab | {"hi": 258}, merges=[("h", "i")]))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(" ", "merged_with_next"), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken("<bos>", special=True), AddedToken("<eos>", special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 256)]
    )
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(max_length=5)
    found: dict[str, Any] = json.loads(tokenizer.to_str())
    return found


ODD: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    1,
    2**31,
    2**32,
    2**63,
    2**64,
    10**30,
    1.5,
    1e308,
    "",
    "x",
    "\0",
    "\ud800",
]
ODD += ["a" * 70_000, [], {}, [[]], {"type": "x"}, {"String": ""}, {"Regex": "(a+)+$"}, {"Regex": "("}]
ODD += [
    {"type": "Precompiled", "precompiled_charsmap": "x"},
    {"type": "Replace", "pattern": {"String": ""}, "content": "hi"},
]
ODD += [
    {"type": "Metaspace", "replacement": "", "prepend_scheme": "always"},
    {"type": "Truncate", "max_length": 2**63},
]
ODD += [{"type": "Unigram", "vocab": [], "unk_id": 5}, {"type": "WordPiece", "vocab": {}, "unk_token": "?"}]
ODD += [{"type": "Unigram", "vocab": [["a", float("nan")]], "unk_id": 0}, {"type": "BertNormalizer"}]


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a tree, with each of its keys."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places(tree[key])


def mutated(tree: Any, draw: random.Random) -> Any:
    """A copy with one to three values replaced, dropped, or put in another's place; the vocabulary less often."""
    tree = copy.deepcopy(tree)
    for _ in range(draw.choice([1, 1, 2, 3])):
        found = [(at, key) for at, key in places(tree) if len(at) < 100 or draw.random() < 0.02]
        if not found:
            break
        (at, key), (other, its) = draw.choice(found), draw.choice(found)
        match draw.choice(["odd", "odd", "odd", "drop", "swap", "more"]):
            case "drop":
                del at[key]
            case "swap":
                at[key] = copy.deepcopy(other[its])
            case "more" if isinstance(at[key], int):
                at[key] = at[key] + draw.choice([-1, 1, 255, 2**31, -(2**33)])
            case _:
                at[key] = copy.deepcopy(draw.choice(ODD))
    return tree


def as_json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def mutated_bytes(data: bytes, draw: random.Random) -> bytes:
    file = bytearray(data)
    for _ in range(draw.choice([1, 2, 8])):
        at = draw.randrange(len(file))
        match draw.choice(["flip", "cut", "repeat", "digit", "insert"]):
            case "flip":
                file[at] ^= 1 << draw.randrange(8)
            case "cut" if draw.random() < 0.3:
                del file[at + 1 :]
            case "repeat":
                file[at:at] = file[at : at + 64]
            case "digit":
                digits = [i for i, byte in enumerate(file) if byte in b"0123456789"] or [at]
                file[draw.choice(digits)] = draw.choice(b"0123456789-.")
            case _:
                file[at:at] = draw.choice(
                    [b"\xff", b"\0", b'"', b"}", b"9" * 400, b"[" * 3000, b"\\u0000", b"e99"]
                )
    return bytes(file)


def answered(folder: Path, prompt: str) -> str:
    """`ids`, or the class of the error; nothing else may come of it."""
    begun = time.monotonic()
    try:
        with closing(PromptReader(Options(prompt=prompt, weights=folder))) as reader:
            found = reader.read(prompt, 300)
            assert found.ids
            assert all(type(id) is int and 0 <= id < 300 for id in found.ids)
            for text in found.texts([[1], [258, 3], [299]], special=True):
                assert isinstance(text, str)
    except AtlasError as error:
        kind, message = type(error).__name__, error.message
    else:
        kind, message = "ids", ""
    assert len(message) < 1000
    assert "\n" not in message
    assert time.monotonic() - begun < SECONDS + 30
    return kind


Mutate = Callable[[Path, random.Random], None]


def a_tree(folder: Path, draw: random.Random) -> None:
    (folder / "tokenizer.json").write_bytes(as_json(mutated(small(), draw)))


def some_bytes(folder: Path, draw: random.Random) -> None:
    (folder / "tokenizer.json").write_bytes(mutated_bytes(as_json(small()), draw))


def settings(folder: Path, draw: random.Random) -> None:
    data = as_json(mutated(SETTINGS, draw))
    name = draw.choice(["tokenizer_config.json", "generation_config.json", "config.json"])
    (folder / name).write_bytes(mutated_bytes(data, draw) if draw.random() < 0.3 else data)


@pytest.mark.parametrize("mutate", [a_tree, some_bytes, settings])
def test_ids_or_an_error(
    mutate: Mutate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tokenizer_process, "SECONDS", float(SECONDS))
    draw = random.Random(SEED)
    seen: Counter[str] = Counter()
    for _ in range(EXAMPLES):
        for name in ("tokenizer_config.json", "generation_config.json", "config.json"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / "tokenizer.json").write_bytes(as_json(small()))
        (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
        mutate(tmp_path, draw)
        seen[answered(tmp_path, draw.choice(["hi", "", "hi  the\0 é\n", "<bos>hi<eos>", "h" * 500]))] += 1
    assert capfd.readouterr() == ("", "")  # what the library says of a panic goes nowhere
    assert len(seen) > 1, f"the mutations no longer reach both: {seen}"
    with capfd.disabled():
        if SEED is None:
            print(f"\n{mutate.__name__}: {dict(seen)}")
