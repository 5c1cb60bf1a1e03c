"""Prompts as ids, and ids as text: tokenizers of the two kinds there are, and none at all."""
# ruff: noqa: E402  what needs torch is imported after the question whether it is there

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip(
    "tokenizers", reason="`atlas run` needs the extra: pip install 'open-model-atlas[run]'"
)

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from atlas.errors import AtlasError, CheckpointError, UsageError
from atlas.execution.options import Options
from atlas.execution.prompt import BYTES, Prompt, Reader

VOCAB = 300


def byte_level(bos: bool) -> Tokenizer:
    """As Llama 3's: bytes, and a BOS that the post-processor adds or not."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<bos>", special=True), AddedToken("<eos>", special=True)])
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 256)]
        )
    return tokenizer


def spaces_as_underlines() -> Tokenizer:
    """As SentencePiece's: a space before the first word, which the decoder takes away again."""
    words = ["<unk>", "<bos>", "▁once", "▁upon", "▁a", "▁time", "s"]
    tokenizer = Tokenizer(models.BPE(vocab={}, merges=[]))
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken("<bos>", special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 1)]
    )
    return tokenizer


@pytest.fixture
def given(tmp_path: Path) -> Callable[..., Prompt]:
    """A prompt, a tokenizer beside the weights if there is one, and settings by file -> the prompt as read."""

    def make(text: str, tokenizer: Tokenizer | None = None, *, ids: Any = None, **settings: Any) -> Prompt:
        if tokenizer is not None:
            tokenizer.save(str(tmp_path / "tokenizer.json"))
        for name, found in settings.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(found))
        return Reader(Options(prompt=text, token_ids=ids, weights=tmp_path)).read(VOCAB)

    return make


Given = Callable[..., Prompt]


def byte_ids(text: str) -> tuple[int, ...]:
    return tuple(byte_level(False).encode(text).ids)


# ---- BOS


def test_the_post_processor_adds_bos(given: Given) -> None:
    assert given("hi", byte_level(True)).ids == (256, *byte_ids("hi"))
    assert given("", byte_level(True)).ids == (256,)


@pytest.mark.parametrize(
    "settings",
    [
        {"config": {"bos_token_id": 256}},
        {"generation_config": {"bos_token_id": 256}, "config": {"bos_token_id": None}},
        {"tokenizer_config": {"bos_token": "<bos>"}, "config": {"bos_token_id": 7}},
        {"tokenizer_config": {"bos_token": {"content": "<bos>", "lstrip": False}}},
    ],
)
def test_without_one_the_configuration_says_which_it_is(given: Given, settings: dict[str, Any]) -> None:
    assert given("hi", byte_level(False), **settings).ids == (256, *byte_ids("hi"))
    assert given("", byte_level(False), **settings).ids == (256,)


def test_a_tokenizer_that_is_said_to_add_none_adds_none(given: Given) -> None:
    settings = {"config": {"bos_token_id": 256}, "tokenizer_config": {"add_bos_token": False}}
    assert given("hi", byte_level(False), **settings).ids == byte_ids("hi")


@pytest.mark.parametrize("adds", [True, False])
def test_bos_in_the_text_is_the_only_one(given: Given, adds: bool) -> None:
    found = given("<bos>hi", byte_level(adds), config={"bos_token_id": 256})
    assert found.ids == (256, *byte_ids("hi"))
    assert bool(found.notes) is adds
    for note in found.notes:
        assert note == "the prompt already begins with BOS (token 256): a second one was not added"


def test_bos_twice_in_the_text_is_what_was_asked_for(given: Given) -> None:
    assert given("<bos><bos>hi", byte_level(False), config={"bos_token_id": 256}).ids[:2] == (256, 256)


def test_nothing_to_begin_with_is_refused(given: Given) -> None:
    with pytest.raises(UsageError, match="BOS token alone"):
        given("", byte_level(False))
    with pytest.raises(UsageError, match="BOS token alone"):
        given("")
    with pytest.raises(UsageError, match="BOS token alone"):
        given("", ids=())


# ---- EOS


@pytest.mark.parametrize(
    ("settings", "ids"),
    [
        ({}, set()),
        ({"config": {"eos_token_id": 5}}, {5}),
        ({"config": {"eos_token_id": [5, 6]}}, {5, 6}),
        ({"config": {"eos_token_id": 5}, "generation_config": {"eos_token_id": [8, 9]}}, {8, 9}),
        ({"config": {"eos_token_id": 5}, "tokenizer_config": {"eos_token": "<eos>"}}, {5, 257}),
    ],
)
def test_the_ends_of_a_text(given: Given, settings: dict[str, Any], ids: set[int]) -> None:
    assert given("hi", byte_level(True), **settings).eos == ids


# ---- no tokenizer, and ids as such


def test_without_a_tokenizer_the_bytes_serve(given: Given) -> None:
    found = given("né", config={"bos_token_id": 7, "eos_token_id": 9})
    assert found.ids == (110, 195, 169)
    assert (found.by, found.eos) == (BYTES, {9})
    assert "UTF-8 bytes serve as token ids" in found.notes[0]
    assert found.text([65], special=True) is None
    assert given("").ids == (7,)


def test_ids_as_such(given: Given, tmp_path: Path) -> None:
    assert given("", ids=(3, 4)).by is None
    found = given("", byte_level(True), ids=(3, 4))
    assert found.ids == (3, 4)
    assert found.by == str(tmp_path / "tokenizer.json")
    assert found.text(byte_ids(" there"), special=False) == " there"


@pytest.mark.parametrize(("ids", "said"), [((3, 300), "token 300 is"), ((-1,), "token -1 is")])
def test_an_id_outside_the_vocabulary_is_refused_by_name(given: Given, ids: Any, said: str) -> None:
    with pytest.raises(UsageError, match=f"{said} outside the vocabulary of 300: ids run from 0 to 299"):
        given("", ids=ids)
    larger = byte_level(True)
    larger.add_special_tokens([f"<{i}>" for i in range(60)])
    with pytest.raises(UsageError, match=r"token 317 \('<59>'\) is outside"):
        given("a<59>", larger)


def test_what_is_no_tokenizer_is_refused(given: Given, tmp_path: Path) -> None:
    model = tmp_path / "tokenizer.model"
    model.write_bytes(b"\x0a\x0b")
    for make, kind in [
        (lambda: given("hi"), UsageError),
        (lambda: Reader(Options(prompt="hi", tokenizer=model)), UsageError),
        (lambda: Reader(Options(prompt="hi", tokenizer=tmp_path / "none.json")), CheckpointError),
    ]:
        with pytest.raises(kind) as error:
            make()
        assert isinstance(error.value, AtlasError)
        assert "give --tokenizer a tokenizer.json" in error.value.hint
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot be used as a tokenizer"):
        given("hi")


# ---- text


def test_text_that_follows_keeps_its_first_space(given: Given) -> None:
    begun = given("once upon", spaces_as_underlines())
    assert begun.ids == (1, 2, 3)
    assert begun.text([4, 5], special=False) == " a time"
    assert given("", spaces_as_underlines()).text([2, 3], special=False) == "once upon"


def test_special_tokens_are_in_the_text_only_if_asked_for(given: Given) -> None:
    found = given("hi", byte_level(True))
    ids = [*byte_ids("!"), 257]
    assert found.text(ids, special=False) == "!"
    assert found.text(ids, special=True) == "!<eos>"


def test_half_a_character_is_no_reason_to_lose_the_rest(given: Given) -> None:
    found = given("", byte_level(True), ids=byte_ids("é")[:1])
    assert found.text([*byte_ids("é")[1:], *byte_ids("!")], special=False) is not None
