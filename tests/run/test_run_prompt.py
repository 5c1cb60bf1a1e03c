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
from atlas.execution.prompt import BYTES, Prompt, PromptReader, TextStream

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

    def make(
        text: str,
        tokenizer: Tokenizer | None = None,
        *,
        ids: Any = None,
        bos: bool | None = None,
        real: bool = True,
        **settings: Any,
    ) -> Prompt:
        if tokenizer is not None:
            tokenizer.save(str(tmp_path / "tokenizer.json"))
        for name, found in settings.items():
            (tmp_path / f"{name}.json").write_text(json.dumps(found))
        options = Options(prompt=text, token_ids=ids, bos=bos, weights=tmp_path if real else None)
        return PromptReader(options).read(text, VOCAB)

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
def test_a_stated_bos_id_is_no_reason_to_add_it(given: Given, settings: dict[str, Any]) -> None:
    """As transformers 5.24 tokenizes with such files; the empty prompt is BOS alone, and --bos adds it."""
    assert given("hi", byte_level(False), **settings).ids == byte_ids("hi")
    assert given("", byte_level(False), **settings).ids == (256,)
    assert given("hi", byte_level(False), bos=True, **settings).ids == (256, *byte_ids("hi"))


@pytest.mark.parametrize("adds", [True, False])
def test_add_bos_token_adds_it(given: Given, adds: bool) -> None:
    settings = {"config": {"bos_token_id": 256}, "tokenizer_config": {"add_bos_token": adds}}
    assert given("hi", byte_level(False), **settings).ids == ((256,) if adds else ()) + byte_ids("hi")
    # Where the post-processor adds it, transformers 5 does not look at the key.
    assert given("hi", byte_level(True), **settings).ids == (256, *byte_ids("hi"))


def test_bos_and_no_bos_override_the_tokenizer(given: Given) -> None:
    plain = byte_ids("hi")
    assert given("hi", byte_level(True), bos=False).ids == plain
    assert given("hi", byte_level(True), bos=True).ids == (256, *plain)
    assert given("<bos>hi", byte_level(True), bos=False).ids == (256, *plain)  # what the text itself says
    with pytest.raises(UsageError, match="an empty prompt without BOS"):
        given("", byte_level(True), bos=False)
    with pytest.raises(UsageError, match="--bos: neither"):
        given("hi", byte_level(False), bos=True)


def test_bos_is_what_transformers_adds(given: Given, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="its tokenizer is the other source")
    for adds in (True, False):
        found = given("hi", byte_level(adds), tokenizer_config={"bos_token": "<bos>"})
        theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
        assert list(found.ids) == theirs("hi")["input_ids"]


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
    found = given("né", real=False)
    assert found.ids == (110, 195, 169)
    assert found.tokenized_by == BYTES
    assert "UTF-8 bytes are used as token ids" in found.notes[0]
    assert found.texts([[65]], special=True) == [None]
    found = given("", config={"bos_token_id": 7, "eos_token_id": 9})
    assert (found.ids, found.eos) == ((7,), {9})


@pytest.mark.parametrize(
    "names",
    [
        ["tekken.json"],
        ["tokenizer.model"],
        ["tokenizer.model.v3"],
        ["vocab.json", "merges.txt"],
        ["spiece.model"],
        ["qwen.tiktoken"],
        [],
    ],
)
def test_real_weights_are_never_fed_bytes(given: Given, tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(
        UsageError, match=r"the prompt cannot be tokenized: tokenizer\.json is not in"
    ) as error:
        given("hi")
    assert all(name in error.value.message for name in names)
    assert "--token-ids" in error.value.hint
    assert given("", ids=(3,)).ids == (3,)
    for name in names[:1]:
        with pytest.raises(UsageError, match="cannot be read yet"):
            PromptReader(Options(prompt="hi", tokenizer=tmp_path / name))
    if names:
        assert given("hi", byte_level(True)).ids == (256, *byte_ids("hi"))


def test_ids_as_such(given: Given, tmp_path: Path) -> None:
    assert given("", ids=(3, 4)).tokenized_by is None
    found = given("", byte_level(True), ids=(3, 4))
    assert found.ids == (3, 4)
    assert found.tokenized_by is None  # they were tokenized by nothing; the tokenizer only decodes
    assert found.texts([byte_ids(" there")], special=False) == [" there"]


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
        (lambda: PromptReader(Options(prompt="hi", tokenizer=model)), UsageError),
        (lambda: PromptReader(Options(prompt="hi", tokenizer=tmp_path / "none.json")), CheckpointError),
    ]:
        with pytest.raises(kind) as error:
            make()
        assert isinstance(error.value, AtlasError)
        assert "give --tokenizer a tokenizer.json" in error.value.hint
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match="cannot be used as a tokenizer"):
        given("hi")
    prompt = PromptReader(Options(token_ids=(1,), weights=tmp_path)).read("", 64)
    assert (prompt.ids, prompt.tokenizer) == ((1,), None)  # ids need no tokenizer
    assert "cannot be used as a tokenizer" in " ".join(prompt.notes)


# ---- text


def test_text_that_follows_keeps_its_first_space(given: Given) -> None:
    begun = given("once upon", spaces_as_underlines())
    assert begun.ids == (1, 2, 3)
    assert begun.texts([[4, 5]], special=False) == [" a time"]
    assert given("", spaces_as_underlines()).texts([[2, 3]], special=False) == ["once upon"]


def test_special_tokens_are_in_the_text_only_if_asked_for(given: Given) -> None:
    found = given("hi", byte_level(True))
    ids = [*byte_ids("!"), 257]
    assert found.texts([ids], special=False) == ["!"]
    assert found.texts([ids], special=True) == ["!<eos>"]


def test_half_a_character_is_no_reason_to_lose_the_rest(given: Given) -> None:
    found = given("", byte_level(True), ids=byte_ids("é")[:1])
    assert found.texts([[*byte_ids("é")[1:], *byte_ids("!")]], special=False) != [None]


# ---- text as it is generated


def streamed(prompt: Prompt, ids: Any, *, special: bool = False) -> list[str]:
    """The pieces of a text that is decoded id by id."""
    stream = TextStream(prompt, special=special)
    pieces = [*map(stream.push, ids), stream.end()]
    assert stream.text == "".join(pieces)
    return pieces


@pytest.mark.parametrize("text", ["plain", " né 漢字 🙂!", "<eos>a<bos>"])
def test_a_streamed_text_is_the_text(given: Given, text: str) -> None:
    prompt, ids = given("hi", byte_level(True)), byte_ids(text)
    for special in (False, True):
        pieces = streamed(prompt, ids, special=special)
        assert "".join(pieces) == prompt.texts([ids], special=special)[0]
        assert not any("\ufffd" in piece for piece in pieces)


def test_a_character_comes_with_its_last_byte(given: Given) -> None:
    # é is the two bytes C3 A9.
    assert streamed(given("hi", byte_level(True)), byte_ids("aé!")) == ["a", "", "é", "!", ""]


def test_what_is_no_utf8_comes_all_the_same(given: Given) -> None:
    half = byte_ids("é")[:1]
    assert streamed(given("hi", byte_level(True)), half) == ["", "\ufffd"]
    assert "".join(streamed(given("hi", byte_level(True)), half * 30)).count("\ufffd") == 30


def test_a_stream_keeps_spaces(given: Given) -> None:
    pieces = streamed(given("once upon", spaces_as_underlines()), [4, 5, 6, 2])
    assert pieces == [" a", " time", "s", " once", ""]
    assert "".join(streamed(given("", spaces_as_underlines()), [2, 3, 4, 5])) == "once upon a time"
