"""`atlas models`: which models of the catalogue are listed."""

from __future__ import annotations

import pytest

from atlas.errors import UsageError
from atlas.pages.catalogue import list_models
from atlas.spec.library import Library


def ids(library: Library, *words: str, family: str | None = None, publisher: str | None = None) -> list[str]:
    return [model.id for model in list_models(library, words, family=family, publisher=publisher).models]


def test_every_entry_by_family(library: Library) -> None:
    found = list_models(library).models
    assert len(found) == 90
    released = {model.family: model.released for model in found}
    assert list(released.values()) == sorted(released.values())
    assert [family for family in released if family.startswith("llama")][:4] == [
        "llama2",
        "llama-guard",
        "llama3",
        "llama3.1",
    ]
    follows = {model.family: model.follows for model in found}
    assert (follows["llama3.1"], follows["llama3"]) == ("llama3", "llama2")


def test_all_words_have_to_occur(library: Library) -> None:
    assert ids(library, "3.1", "8b") == ["llama3.1-8b", "llama3.1-8b-instruct"]
    assert ids(library, "LLAMA3.1-8B", "base") == ["llama3.1-8b"]
    assert ids(library, "Meta-Llama-3-8B-Instruct") == ["llama3-8b-instruct"]


def test_a_family_and_a_publisher(library: Library) -> None:
    assert set(ids(library, family="llama3")) == {
        "llama3-8b",
        "llama3-70b",
        "llama3-8b-instruct",
        "llama3-70b-instruct",
    }
    meta = ids(library, publisher="meta")
    assert {"opt-125m", "llama2-7b"} <= set(meta)
    assert len(meta) == 46  # its catalogue's 45, and OPT
    assert ids(library, "OpenAI") == ids(library, publisher="openai") == ["gpt2", "gpt-oss-20b"]


def test_words_may_be_of_the_architecture(library: Library) -> None:
    assert ids(library, "qwen", "moe") == ["qwen1.5-moe-a2.7b", "qwen3-30b-a3b"]


def test_a_copied_configuration_is_called_one(library: Library) -> None:
    found = {model.id: model for model in list_models(library).models}
    assert found["qwen3-0.6b"].copy
    assert found["qwen3-0.6b"].source.startswith("github:ai-dynamo/aiconfigurator@")
    assert not found["minitron-4b"].copy
    assert found["llama3.1-8b"].source == ""


@pytest.mark.parametrize(
    ("words", "options", "message", "hint"),
    [
        (("gpt", "9000"), {}, "no model of the catalogue matches 'gpt 9000'", "`atlas models`"),
        ((), {"family": "llama5"}, "no family is called 'llama5'", "llama3"),
        ((), {"family": "qwen"}, "no family is called 'qwen'", "did you mean qwen2, qwen3"),
        ((), {"family": "xyz"}, "no family is called 'xyz'", "families are gpt2, gpt-j"),
        ((), {"publisher": "Nobody"}, "no publisher is called 'Nobody'", "Meta"),
    ],
)
def test_what_is_not_there_is_refused(
    words: tuple[str, ...], options: dict[str, str], message: str, hint: str, library: Library
) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        list_models(library, words, **options)
    assert hint in refused.value.hint
